-- A task may be given back by a conductor that does not reach its host; that conductor leaves it out of its own sweeps for a
-- while, so that one that does reach the host finds it.
drop function cell_sweep(uuid, double precision, int);

-- Skips what others have locked, so that conductors sweeping at once neither wait for each other nor take a task twice.
create function cell_sweep(conductor uuid, untaken_ms double precision, tasks_max int, except_ids uuid[])
  returns table (id uuid, payload bytea, epoch int, selection int, host text, attempt_id text)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  found_ids uuid[] := array(
    select t.id from tasks t
    where t.ended_at is null and t.id <> all (except_ids)
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

-- Frees the tasks that the conductor still owns under these epochs, if another one lives that can take them; which they were.
create function cell_hand_over(conductor uuid, task_ids uuid[], epochs int[])
  returns table (id uuid, epoch int)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  return query
    update tasks t set owner = null
    where t.id = any (array(
      select l.id from tasks l
      join unnest(task_ids, epochs) as w (id, epoch) on l.id = w.id and l.epoch = w.epoch
      where l.ended_at is null and l.owner = conductor
        and exists (select from conductors c where c.id <> conductor and c.lease_expires_at > now())
      order by l.id for no key update of l
    ))
    returning t.id, t.epoch;
end
$$;
