-- requires: cell_own
-- Takes tasks that belong to no live conductor, oldest first. Skips tasks that other transactions have locked, so that conductors that
-- sweep at once neither wait for each other nor take a task twice. A conductor that has handed tasks over excludes them from its own sweeps
-- for a while (`except_ids`), so that a conductor that reaches their hosts finds them.
-- It scans the index of open tasks, because only an index scan marks entries of ended tasks as dead, for the next sweep to skip and the
-- next task to overwrite. A bitmap scan would leave that to vacuum.
create or replace function cell_sweep(conductor uuid, untaken_ms double precision, tasks_max int, except_ids uuid[])
  returns table (id uuid, payload bytea, epoch int, selection int, host text, attempt_id text)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set enable_bitmapscan = off
as $$
declare
  found_ids uuid[] := array(
    select t.id from tasks t
    where t.outcome is null and t.id <> all (except_ids)
      and case when t.owner is null then t.created_at <= now() - untaken_ms * interval '1 ms'
        else t.owner <> conductor
          and not exists (select from conductors c where c.id = t.owner and c.lease_expires_at > now()) end
    order by t.created_at, t.id limit tasks_max for no key update of t skip locked
  );
begin
  return query
    select o.* from cell_own(conductor, found_ids) as o order by array_position(found_ids, o.id);
end
$$;
