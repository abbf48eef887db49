-- requires: cell_give_back
-- Ends builds that failed for good: their servers go to ERROR, with the reason, and hold nothing. Returns the committed positions.
create or replace function cell_commit_error(
  task_ids uuid[], server_uuids uuid[], epochs int[], selections int[], attempt_reasons text[], reasons text[]
)
  returns setof int
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  fresh int[];
  committed int[];
begin
  select coalesce(array_agg(c.at) filter (where not c.repeated), '{}'), array_agg(c.at) into fresh, committed
  from cell_give_back(task_ids, server_uuids, epochs, 'error') as c;
  update servers s
  set status = 'ERROR', task_state = null, host = null, attempt_id = null, fault = reasons[f.at], fault_at = now(),
    updated_at = now()
  from unnest(fresh) as f (at) where s.uuid = server_uuids[f.at];
  update attempts a set ended_at = now(), result = 'failed', reason = attempt_reasons[f.at]
  from unnest(fresh) as f (at)
  where a.task_id = task_ids[f.at] and a.selection = selections[f.at] and a.result is null;
  return query select c.at from unnest(committed) as c (at);
end
$$;
