-- Writes a server whose spec a follower of `berth_server_rows` does not have, because it is new or the server was on no host, into the log, like
-- announce_servers. A spec may be long, and few updates change it.
create or replace function announce_spec() returns trigger language plpgsql
  set search_path from current
as $$
begin
  perform pg_logical_emit_message(true, 'berth_servers', record_send(row(
    new.uuid, convert_to(new.status, 'UTF8'), convert_to(new.task_state, 'UTF8'), convert_to(new.host, 'UTF8'), new.spec
  )));
  return null;
end
$$;
