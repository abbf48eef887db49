-- requires: cell_note
-- Gives these tasks to the conductor, if no other one has them, and records in the tasks that it took them. Servers are read by a separate
-- statement after the tasks are locked, because a hop writes both, and the answer must be consistent.
create or replace function cell_take(conductor uuid, task_ids uuid[])
  returns table (id uuid, payload bytea, epoch int, selection int, host text, attempt_id text)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  taken_ids uuid[];
  -- The update adds the time, because a conductor that waits for a row's lock takes the task only when it gets the lock.
  taker constant text := conductor::text || '/' || coalesce((select c.name from conductors c where c.id = conductor), '');
begin
  with taken as (
    update tasks t set owner = conductor, epoch = t.epoch + 1,
      takings = case when t.owner = conductor then t.takings else cell_note(t.takings, taker, 20) end
    from (select u.id from unnest(task_ids) as u (id) order by u.id) w
    where t.id = w.id and t.ended_at is null
      and (t.owner is null or t.owner = conductor
        or not exists (select from conductors c where c.id = t.owner and c.lease_expires_at > now()))
    returning t.id
  )
  select array_agg(taken.id) into taken_ids from taken;
  return query
    select t.id, t.payload, t.epoch, t.selection, s.host, s.attempt_id
    from tasks t join servers s on s.uuid = t.server_uuid where t.id = any (taken_ids);
end
$$;
