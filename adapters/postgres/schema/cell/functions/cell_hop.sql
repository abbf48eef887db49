-- requires: cell_claims, cell_without, ledger_apply, ledger_swap_together
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
  written int;
  owned int[];
  outcomes text[];
  details jsonb[];
begin
  begin
    update servers s set host = w.host, attempt_id = w.attempt_id, updated_at = now()
    from (select u.* from unnest(server_uuids, to_hosts, to_attempt_ids) as u (uuid, host, attempt_id) order by u.uuid) w
    where s.uuid = w.uuid;
    update tasks t set selection = w.selection
    from (
      select u.* from unnest(task_ids, server_uuids, epochs, to_selections) as u (id, server_uuid, epoch, selection) order by u.id
    ) w
    where t.id = w.id and t.server_uuid = w.server_uuid and t.epoch = w.epoch and t.ended_at is null;
    get diagnostics written = row_count;
    if written < count then
      raise exception using errcode = 'BT002';
    end if;
    perform ledger_swap_together(changes);
    update attempts a set ended_at = now(), result = 'failed', reason = w.reason
    from unnest(task_ids, from_selections, reasons) as w (task_id, selection, reason)
    where a.task_id = w.task_id and a.selection = w.selection and a.result is null;
    insert into attempts (task_id, selection, server_uuid, host)
    select w.* from unnest(task_ids, to_selections, server_uuids, to_hosts) as w (task_id, selection, server_uuid, host);
    return query select r.at, 'committed', null::jsonb from generate_series(1, count) as r (at);
    return;
  exception when unique_violation or sqlstate 'BT002' then
    null;
  end;

  owned := array(select c.at from cell_claims(task_ids, server_uuids, epochs, null) as c);
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
