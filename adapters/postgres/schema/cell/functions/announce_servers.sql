-- Writes the servers that a statement has inserted or updated into the log, as one message that the followers of `berth_server_rows` read instead of
-- the rows. The rows are records in Postgres' binary format, one after the other, which decode-pgoutput.ts reads. Updated rows have no spec: see
-- announce_spec. Texts are sent as bytes, because those of a record would be in the encoding of whoever writes.
-- A restore writes a whole table in one statement, which may be more than a value can hold. Rows beyond a mebibyte come in further messages, one after the
-- other: they are sorted rather than hashed, since a hash would hold all of them in memory.
-- A restore runs without a search path, so it is set here.
create or replace function announce_servers() returns trigger language plpgsql
  set search_path from current
  set enable_hashagg = off
as $$
declare
  is_insert constant boolean := tg_op = 'INSERT';
begin
  perform pg_logical_emit_message(true, 'berth_servers', n.written)
  from (
    select string_agg(p.written, ''::bytea) as written
    from (
      select r.written, sum(octet_length(r.written)) over (rows unbounded preceding) / 1048576 as part
      from (
        select record_send(row(
          v.uuid, convert_to(v.status, 'UTF8'), convert_to(v.task_state, 'UTF8'), convert_to(v.host, 'UTF8'),
          case when is_insert then v.spec end
        )) as written
        from new_rows v
      ) r
    ) p
    group by p.part
  ) n;
  return null;
end
$$;
