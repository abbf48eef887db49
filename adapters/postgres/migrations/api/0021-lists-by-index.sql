-- concurrently: requests go on being accepted while the indexes are built
update requests set gone = true where state = 'deleted' and not gone;
drop index concurrently if exists requests_living;
create index concurrently requests_living on requests (created_at desc, server_uuid) where not gone;
drop index concurrently if exists requests_living_of_project;
create index concurrently requests_living_of_project on requests (project_id, created_at desc, server_uuid) where not gone;
-- The former indexes, with the deleted ones in them. Services of the version before find the same by reading all requests.
drop index concurrently if exists requests_project_id_created_at_server_uuid_idx;
drop index concurrently if exists requests_created_at_server_uuid_idx;
