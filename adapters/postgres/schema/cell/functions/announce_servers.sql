-- Writes the servers that a statement has inserted or updated into the log, as one message that the followers of `berth_server_rows` read instead of
-- the rows. The rows are records in Postgres' binary format, one after the other, which decode-pgoutput.ts reads. Updated rows have no spec: see
-- announce_spec. Texts are sent as bytes, because those of a record would be in the encoding of whoever writes.
-- A restore runs without a search path, so it is set here.
create or replace function announce_servers() returns trigger language plpgsql
  set search_path from current
as $$
declare
  is_insert constant boolean := tg_op = 'INSERT';
begin
  perform pg_logical_emit_message(true, 'berth_servers', n.written)
  from (
    select string_agg(record_send(row(
      v.uuid, convert_to(v.status, 'UTF8'), convert_to(v.task_state, 'UTF8'), convert_to(v.host, 'UTF8'),
      case when is_insert then v.spec end
    )), ''::bytea) as written
    from new_rows v
  ) n
  where n.written is not null;
  return null;
end
$$;
