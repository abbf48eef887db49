-- requires: cell_finish_tasks, cell_give_back, ledger_give_back
-- Ends delete tasks: their servers become DELETED and release all their allocations. Returns the committed positions.
create or replace function cell_commit_deleted(task_ids uuid[], server_uuids uuid[], epochs int[])
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
  begin
    update servers s
    set status = 'DELETED', task_state = null, host = null, attempt_id = null, deleted_at = now(), updated_at = now()
    from (select u.uuid from unnest(server_uuids) as u (uuid) order by u.uuid) w where s.uuid = w.uuid;
    perform cell_finish_tasks(task_ids, server_uuids, epochs, 'deleted', null);
    perform ledger_give_back(server_uuids);
    return query select generate_series(1, cardinality(task_ids));
    return;
  exception when sqlstate 'BT002' then
    null;
  end;

  select coalesce(array_agg(c.at) filter (where not c.repeated), '{}'), array_agg(c.at) into fresh, committed
  from cell_give_back(task_ids, server_uuids, epochs, 'deleted') as c;
  update servers s
  set status = 'DELETED', task_state = null, host = null, attempt_id = null, deleted_at = now(), updated_at = now()
  from unnest(fresh) as f (at) where s.uuid = server_uuids[f.at];
  return query select c.at from unnest(committed) as c (at);
end
$$;
