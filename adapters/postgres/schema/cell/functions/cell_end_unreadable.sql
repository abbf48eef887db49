-- Ends tasks that no conductor can read, each under its epoch, and shows their servers in ERROR. The server's allocations, its home and an
-- unfinished move stay as they are until it is deleted, since nobody knows what a host was told. Returns the positions of the ended tasks,
-- including those that this same epoch has ended before. Servers are locked before tasks, as deletes do it.
create or replace function cell_end_unreadable(task_ids uuid[], epochs int[], reasons text[])
  returns table (at int, server_uuid uuid)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  n int;
begin
  perform from servers s
  where s.uuid = any (array(select t.server_uuid from tasks t where t.id = any (task_ids)))
  order by s.uuid for no key update;
  for n in 1..cardinality(task_ids) loop
    at := n;
    server_uuid := null;
    update tasks t set ended_at = now(), outcome = 'error', stage = null
    where t.id = task_ids[n] and t.epoch = epochs[n] and t.ended_at is null
    returning t.server_uuid into server_uuid;
    if server_uuid is not null then
      update servers s
      set status = 'ERROR', task_state = null, fault = reasons[n], fault_at = now(), revision = s.revision + 1, updated_at = now()
      where s.uuid = cell_end_unreadable.server_uuid and s.status not in ('CLOSED', 'DELETED');
      update attempts a set ended_at = now(), result = 'failed', reason = reasons[n]
      where a.task_id = task_ids[n] and a.result is null;
    else
      select t.server_uuid into server_uuid from tasks t
      where t.id = task_ids[n] and t.epoch = epochs[n] and t.outcome = 'error';
    end if;
    if server_uuid is not null then
      return next;
    end if;
  end loop;
end
$$;
