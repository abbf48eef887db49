-- Lists by status in the order of creation, of all projects and of one. The trigger's function writes the new columns, so no server may change while it is
-- replaced: a transaction that runs the former text would leave them out.
--
-- requires: follow_unusual_server

lock table servers in share row exclusive mode;
alter table unusual_servers add created_at timestamptz, add project_id text;
delete from unusual_servers u where not exists (select from servers s where s.uuid = u.server_uuid);
update unusual_servers u set created_at = s.created_at, project_id = s.project_id from servers s where s.uuid = u.server_uuid;
alter table unusual_servers alter created_at set not null, alter project_id set not null;
create index unusual_servers_listed on unusual_servers (status, created_at desc, server_uuid);
create index unusual_servers_of_project on unusual_servers (project_id, status, created_at desc, server_uuid);
drop index unusual_servers_status_server_uuid_idx;
