-- Servers that are neither being built nor active nor gone, so that they are found by their status without a look at the others. The status
-- is no column of an index of `servers`: every change of it would then write all index entries of the row again. The trigger's condition
-- leaves out the changes of a boot and most deletes, which cost nothing for this table.
--
-- requires: follow_unusual_server

create table unusual_servers (
  server_uuid uuid primary key,
  status text not null
);
create index on unusual_servers (status, server_uuid);
insert into unusual_servers (server_uuid, status)
  select uuid, status from servers where status not in ('BUILD', 'ACTIVE', 'DELETED', 'CLOSED');

create trigger follow_unusual after update on servers for each row
  when (old.status <> new.status and (old.status not in ('BUILD', 'ACTIVE', 'DELETED', 'CLOSED')
    or new.status not in ('BUILD', 'ACTIVE', 'DELETED', 'CLOSED')))
  execute function follow_unusual_server();
