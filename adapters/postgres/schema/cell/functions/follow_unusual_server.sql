-- Updates `unusual_servers` after a change of a server's status, under the lock of the server's row.
create or replace function follow_unusual_server() returns trigger language plpgsql
  set search_path from current
as $$
begin
  if new.status in ('BUILD', 'ACTIVE', 'DELETED', 'CLOSED') then
    delete from unusual_servers where server_uuid = new.uuid;
  else
    insert into unusual_servers (server_uuid, status, created_at, project_id)
    values (new.uuid, new.status, new.created_at, new.project_id)
    on conflict (server_uuid) do update
    set status = excluded.status, created_at = excluded.created_at, project_id = excluded.project_id;
  end if;
  return null;
end
$$;
