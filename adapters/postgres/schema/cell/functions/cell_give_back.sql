-- requires: cell_claims, ledger_give_back
-- Ends these tasks with `outcome`, and releases their servers' allocations. Returns the committed positions; `repeated` means that the
-- commit was made before.
create or replace function cell_give_back(task_ids uuid[], server_uuids uuid[], epochs int[], outcome text)
  returns table (at int, repeated boolean)
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
  select coalesce(array_agg(c.at) filter (where not c.repeated), '{}'), coalesce(array_agg(c.at), '{}')
  into fresh, committed from cell_claims(task_ids, server_uuids, epochs, outcome) as c;
  perform ledger_give_back(array(select server_uuids[f.at] from unnest(fresh) as f (at)));
  update tasks t set ended_at = now(), outcome = cell_give_back.outcome
  from unnest(fresh) as f (at) where t.id = task_ids[f.at];
  return query select c.at, c.at <> all (fresh) from unnest(committed) as c (at);
end
$$;
