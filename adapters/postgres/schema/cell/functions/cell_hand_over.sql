-- Releases the tasks that the conductor still owns under these epochs, or has begun and not held yet, if another live conductor can take them. Returns the
-- released tasks.
create or replace function cell_hand_over(conductor uuid, task_ids uuid[], epochs int[])
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
      where l.ended_at is null and (l.owner = conductor or l.owner is null and l.epoch = 0)
        and exists (select from conductors c where c.id <> conductor and c.lease_expires_at > now())
      order by l.id for no key update of l
    ))
    returning t.id, t.epoch;
end
$$;
