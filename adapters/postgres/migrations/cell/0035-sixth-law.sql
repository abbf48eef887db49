-- What the sixth law needs: silence is no reason to destroy, to confirm or to give room back.

-- What people should know of a move now: what it waits for and what they can do, or why it was not confirmed. Empty: nothing.
alter table migrations add column note text not null default '';

-- Notes that something is held on a host for a guest of a server that a delete or an offload could not destroy: a row of `migrations` of kind
-- `leftover`, which is no move. It has no task of its uuid, so that whoever lists moves with their tasks passes it over.
create function cell_leave_behind(leftover uuid, of_server uuid, on_host text) returns void
  language sql
as $$
  insert into migrations (uuid, server_uuid, kind, status, source_host, dest_host, dest_attempt_id, ended, holds_source, runs)
  values (leftover, of_server, 'leftover', 'done', on_host, on_host, '', true, true, false)
  on conflict (uuid) do nothing;
$$;

-- As in 0013, with the migration's note and with what is left behind.
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
  set stage = w ->> 'stage', step = (w ->> 'step')::int + 1, selection = (w ->> 'selection')::int, reason = w ->> 'reason',
    ended_at = case when w ->> 'outcome' is not null then now() end, outcome = w ->> 'outcome'
  where t.id = (w ->> 'taskId')::uuid;
  update servers s
  set status = coalesce(w ->> 'status', s.status), task_state = w ->> 'taskState',
    host = case when w ? 'host' then w ->> 'host' else s.host end,
    attempt_id = case when w ? 'host' then w ->> 'attemptId' else s.attempt_id end,
    spec = coalesce(decode(w ->> 'spec', 'base64'), s.spec),
    fault = coalesce(w ->> 'fault', s.fault), fault_at = case when w ->> 'fault' is null then s.fault_at else now() end,
    revision = s.revision + 1, updated_at = now()
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

