-- One index of the tasks that are open, by server, in place of one of all tasks by server and one of the open ones by age: whoever
-- asks for a server's tasks means its open ones, and sweeps look at every open task anyway. What ended is found by its id, which
-- attempts and migrations name. Each index is a record of the log for every task that is stored, and again when it ends.
--
-- Open is `outcome is null` for whoever looks for tasks, as only that finds this index, and `ended_at is null` for whoever names them by
-- id, as that does not; the two are written together. Programs of before that look by the latter (which tasks a conductor owns, the
-- audit) read the whole table: they get the same answer later.
--
-- The drops come first: they take the table's strongest lock, for which a migration that held a weaker one would wait in a deadlock
-- with whoever reads tasks and then writes some. The table is read once, tasks wait meanwhile.
drop index tasks_server_uuid_idx;
drop index tasks_created_at_id_idx;
create index tasks_open on tasks (server_uuid) where outcome is null;

-- Skips what others have locked, so that conductors sweeping at once neither wait for each other nor take a task twice. It walks the index
-- of open tasks itself: only so are entries of tasks that ended since marked as dead, for the next sweep to skip and the next task to
-- overwrite. A bitmap of them leaves that to vacuum.
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
