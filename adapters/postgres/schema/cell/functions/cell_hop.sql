-- requires: cell_claims, cell_hop_together, cell_without, ledger_apply
-- Releases the allocation of each `from` selection and claims that of its `to`. A hop without a returned row is fenced. A refused alternate
-- is recorded as skipped; the caller adds the reason in the same transaction.
create or replace function cell_hop(
  task_ids uuid[], server_uuids uuid[], epochs int[], from_selections int[], reasons text[],
  to_selections int[], to_hosts text[], to_attempt_ids text[], changes ledger_batch
)
  returns table (at int, outcome text, detail jsonb)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  count constant int := cardinality(task_ids);
  owned int[];
  outcomes text[];
  details jsonb[];
begin
  if cell_hop_together(task_ids, server_uuids, epochs, from_selections, reasons, to_selections, to_hosts, to_attempt_ids, changes) then
    return query select r.at, 'committed', null::jsonb from generate_series(1, count) as r (at);
    return;
  end if;

  owned := array(select c.at from cell_claims(task_ids, server_uuids, epochs, null) as c);
  -- Two conductors may both have begun a task untaken, under one epoch. A hop from a selection that the other one has left long ago is fenced.
  owned := array(
    select o.at from unnest(owned) as o (at) join tasks t on t.id = task_ids[o.at]
    where t.selection in (from_selections[o.at], to_selections[o.at]) order by o.at
  );
  if cardinality(owned) < count then
    changes := cell_without(changes, array(select p.at from generate_series(1, count) as p (at) where p.at <> all (owned)));
  end if;
  select array_agg(a.kind order by a.change), array_agg(a.detail order by a.change) into outcomes, details
  from ledger_apply(changes) as a;

  update attempts a set ended_at = now(), result = 'failed', reason = reasons[o.at]
  from unnest(owned) as o (at)
  where a.task_id = task_ids[o.at] and a.selection = from_selections[o.at] and a.result is null;
  insert into attempts as a (task_id, selection, server_uuid, host, ended_at, result)
  select task_ids[o.at], to_selections[o.at], server_uuids[o.at], to_hosts[o.at],
    case when outcomes[o.at] <> 'committed' then now() end, case when outcomes[o.at] <> 'committed' then 'skipped' end
  from unnest(owned) as o (at)
  on conflict (task_id, selection) do update
  set host = excluded.host, started_at = now(), ended_at = excluded.ended_at, result = excluded.result, reason = null;
  update tasks t set selection = to_selections[o.at]
  from unnest(owned) as o (at) where outcomes[o.at] = 'committed' and t.id = task_ids[o.at];
  update servers s set host = to_hosts[o.at], attempt_id = to_attempt_ids[o.at], updated_at = now()
  from unnest(owned) as o (at) where outcomes[o.at] = 'committed' and s.uuid = server_uuids[o.at];
  return query select o.at, outcomes[o.at], details[o.at] from unnest(owned) as o (at);
end
$$;
