-- concurrently: writers go on
-- Lists by host, in the order of creation, instead of the index of hosts alone. Lists by zone need the servers without a host, too, of which there are
-- few. A row that only closes a UUID has no project.
drop index concurrently if exists servers_listed_by_host;
create index concurrently servers_listed_by_host on servers (host, created_at desc, uuid) where host is not null;
drop index concurrently if exists servers_without_host;
create index concurrently servers_without_host on servers (created_at desc, uuid)
  where host is null and deleted_at is null and project_id <> '';
drop index concurrently if exists servers_host_idx;
