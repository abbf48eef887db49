-- Writes the inventories that a statement has updated into the log, as one message that the followers of `berth_ledger_rows` read instead of
-- the rows. Each row is 44 bytes in network byte order, which decode-pgoutput.ts reads. A message may hold any number of rows.
-- A restore runs without a search path, so it is set here.
create or replace function announce_inventories() returns trigger language plpgsql
  set search_path from current
as $$
begin
  perform pg_logical_emit_message(true, 'berth_inventories', n.written)
  from (
    select string_agg(
      int4send(v.provider_id) || int4send(v.class_id) || int4send(v.total) || int4send(v.reserved) || int4send(v.min_unit)
        || int4send(v.max_unit) || int4send(v.step_size) || float8send(v.allocation_ratio) || int8send(v.used), ''::bytea
    ) as written
    from new_rows v
  ) n
  where n.written is not null;
  return null;
end
$$;
