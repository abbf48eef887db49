-- requires: cell_first_taking, cell_note
-- Makes the conductor the owner of tasks that it has begun without taking them, under the epoch that they have (0), so that no sweep takes them.
-- Returns the tasks that it owns now. The others have ended, or another conductor has taken them.
create or replace function cell_hold(conductor uuid, task_ids uuid[])
  returns setof uuid
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  taker constant text := conductor::text || '/' || coalesce((select c.name from conductors c where c.id = conductor), '');
begin
  return query
    update tasks t set owner = conductor,
      -- A conductor that had begun it, too, may have released it.
      takings = case when t.owner = conductor then t.takings when cardinality(t.takings) = 0 then cell_first_taking(t.created_at, taker)
        else cell_note(t.takings, taker, 20) end
    from (select u.id from unnest(task_ids) as u (id) order by u.id) w
    where t.id = w.id and t.ended_at is null and t.epoch = 0 and (t.owner is null or t.owner = conductor)
    returning t.id;
end
$$;
