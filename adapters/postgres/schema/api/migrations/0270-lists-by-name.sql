-- concurrently: writers go on
-- Lists that are sorted by name, of all projects and of one.
drop index concurrently if exists requests_living_by_name;
create index concurrently requests_living_by_name on requests (name collate "C", created_at desc, server_uuid) where not gone;
drop index concurrently if exists requests_living_of_project_by_name;
create index concurrently requests_living_of_project_by_name
  on requests (project_id, name collate "C", created_at desc, server_uuid) where not gone;
