-- requires: ledger_swap_together
-- Releases the allocation of each `from` selection and claims that of its `to`, if no hop is fenced and no alternate is refused. Either it writes all of the
-- hops and returns true, or it writes none and returns false; then cell_hop finds out which. It needs no transaction around it, so a hop that comes alone is
-- one round trip.
create or replace function cell_hop_together(
  task_ids uuid[], server_uuids uuid[], epochs int[], from_selections int[], reasons text[],
  to_selections int[], to_hosts text[], to_attempt_ids text[], changes ledger_batch
)
  returns boolean
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  written int;
begin
  update servers s set host = w.host, attempt_id = w.attempt_id, updated_at = now()
  from (select u.* from unnest(server_uuids, to_hosts, to_attempt_ids) as u (uuid, host, attempt_id) order by u.uuid) w
  where s.uuid = w.uuid;
  update tasks t set selection = w.selection
  from (
    select u.* from unnest(task_ids, server_uuids, epochs, from_selections, to_selections) as u (id, server_uuid, epoch, left_one, selection)
    order by u.id
  ) w
  where t.id = w.id and t.server_uuid = w.server_uuid and t.epoch = w.epoch and t.ended_at is null
    and t.selection in (w.left_one, w.selection);
  get diagnostics written = row_count;
  if written < cardinality(task_ids) then
    raise exception using errcode = 'BT002';
  end if;
  perform ledger_swap_together(changes);
  update attempts a set ended_at = now(), result = 'failed', reason = w.reason
  from unnest(task_ids, from_selections, reasons) as w (task_id, selection, reason)
  where a.task_id = w.task_id and a.selection = w.selection and a.result is null;
  insert into attempts (task_id, selection, server_uuid, host)
  select w.* from unnest(task_ids, to_selections, server_uuids, to_hosts) as w (task_id, selection, server_uuid, host);
  return true;
exception when unique_violation or sqlstate 'BT002' then
  return false;
end
$$;
