-- requires: cell_add_task, cell_leave_behind, cell_note
-- Writes one step, a StepWrite of core/tasks/operation-step.ts, for a task whose server and row are locked: the task, its server, its
-- migration, its attempts, and leftovers. Records the stage in the task and the task in its server. Returns the server's new revision.
create or replace function cell_write_step(w jsonb) returns int
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
as $$
declare
  m constant jsonb := w -> 'migration';
  new_revision int;
begin
  update tasks t
  set stages = case
      when w ->> 'stage' is null or (t.stage = w ->> 'stage' and t.selection = (w ->> 'selection')::int) then t.stages
      else cell_note(t.stages, (w ->> 'selection') || '/' || (w ->> 'stage'), 100) end,
    stage = w ->> 'stage', step = (w ->> 'step')::int + 1, selection = (w ->> 'selection')::int, reason = w ->> 'reason',
    ended_at = case when w ->> 'outcome' is not null then now() end, outcome = w ->> 'outcome'
  where t.id = (w ->> 'taskId')::uuid;
  update servers s
  set status = coalesce(w ->> 'status', s.status), task_state = w ->> 'taskState',
    host = case when w ? 'host' then w ->> 'host' else s.host end,
    attempt_id = case when w ? 'host' then w ->> 'attemptId' else s.attempt_id end,
    spec = coalesce(decode(w ->> 'spec', 'base64'), s.spec),
    fault = coalesce(w ->> 'fault', s.fault), fault_at = case when w ->> 'fault' is null then s.fault_at else now() end,
    uncertain_since = case when (w ->> 'uncertain')::boolean then now() else s.uncertain_since end,
    revision = s.revision + 1, updated_at = now(),
    later_tasks = cell_add_task(s.later_tasks, (w ->> 'taskId')::uuid)
  where s.uuid = (w ->> 'serverUuid')::uuid
  returning s.revision into new_revision;
  if m ->> 'uuid' is not null then
    update migrations r
    set status = m ->> 'status', dest_host = m ->> 'destHost', dest_attempt_id = m ->> 'destAttemptId',
      ended = (m ->> 'ended')::boolean, holds_source = (m ->> 'holdsSource')::boolean, runs = (m ->> 'runs')::boolean,
      note = coalesce(m ->> 'note', ''), updated_at = clock_timestamp()
    where r.uuid = (m ->> 'uuid')::uuid;
  end if;
  if w -> 'leftover' ->> 'uuid' is not null then
    perform cell_leave_behind((w -> 'leftover' ->> 'uuid')::uuid, (w ->> 'serverUuid')::uuid, w -> 'leftover' ->> 'host');
  end if;
  insert into attempts as a (task_id, selection, server_uuid, host, ended_at, result, reason)
  select (w ->> 'taskId')::uuid, n.selection, (w ->> 'serverUuid')::uuid, n.host,
    case when n.result is not null then now() end, n.result, nullif(n.reason, '')
  from jsonb_to_recordset(w -> 'attempts') as n (selection int, host text, result text, reason text)
  on conflict (task_id, selection) do update
  set host = excluded.host, ended_at = excluded.ended_at, result = excluded.result, reason = excluded.reason;
  return new_revision;
end
$$;
