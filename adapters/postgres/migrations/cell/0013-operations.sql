-- Operations: everything that is done to a server after it was built (docs/decisions/0006-moves.md). An operation is a task of
-- kind `operate`; each of its steps is one transaction that writes task, server, migration, attempts and allocations together.

alter table servers drop constraint servers_status_check, add constraint servers_status_check check (status in (
  'BUILD', 'ACTIVE', 'ERROR', 'DELETED', 'CLOSED', 'SHUTOFF', 'PAUSED', 'VERIFY_RESIZE', 'SHELVED', 'SHELVED_OFFLOADED'
));
-- Rises with each step of an operation: who plans one says which he saw, and hosts refuse orders that an older step gave.
alter table servers add column revision int not null default 0;

alter table tasks drop constraint tasks_kind_check,
  add constraint tasks_kind_check check (kind in ('build', 'delete', 'operate'));
alter table tasks
  -- What kind of operation.
  add column operation text,
  add column stage text,
  -- How many steps were committed: each is written on the one before.
  add column step int not null default 0,
  -- What somebody told whoever carries it out: abort, force.
  add column signal text,
  -- Why it goes back; empty while it goes forward.
  add column reason text not null default '';

-- Moves, past and present. The uuid is that of the task that began it, whose payload has the rest.
create table migrations (
  uuid uuid primary key,
  server_uuid uuid not null,
  kind text not null,
  status text not null,
  source_host text,
  source_attempt_id text,
  dest_host text not null,
  dest_attempt_id text not null,
  -- One that is not ended keeps its guests from being cleared away, and may hold allocations of the source.
  ended boolean not null default false,
  -- Ended, and holds the source's allocation all the same: an evacuated host that has not come back.
  holds_source boolean not null default false,
  -- Whether the server runs while it waits for its confirmation.
  runs boolean not null,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 70);
create unique index on migrations (server_uuid) where not ended;
create index on migrations (server_uuid);
create index on migrations (source_host) where holds_source;
create index on migrations (created_at);

-- Whether a host is seen: up, or its agent heard of within so many milliseconds. Locks the agent's row, so that whoever says that
-- it has arrived does so before or after this transaction as a whole.
create function cell_host_seen(host_name text, unseen_ms double precision) returns boolean
  language sql
as $$
  select exists (
    select from (
      select h.up, a.seen_at from hosts h join agents a on a.id = h.agent_id where h.name = host_name for share of a
    ) w
    where w.up or w.seen_at > clock_timestamp() - unseen_ms * interval '1 ms'
  );
$$;

-- Writes one step, a StepWrite of core/cell/operation-store.ts, for a task whose server and row are locked. Returns the server's
-- new revision.
create function cell_write_step(w jsonb) returns int
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
      updated_at = clock_timestamp()
    where r.uuid = (m ->> 'uuid')::uuid;
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

-- Begins operations, no two of one server. Bytes: each task's payload, by its start and length. Outcomes: begun, already-begun,
-- busy (detail.running), changed, gone, host-seen, and the refusals of ledger_apply with their detail.
create function cell_begin(
  ops jsonb, bytes bytea, payload_starts int[], payload_lengths int[], changes ledger_batch
)
  returns table (at int, outcome text, detail jsonb, xid bigint)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  count constant int := jsonb_array_length(ops);
  outcomes text[] := array_fill(null::text, array[jsonb_array_length(ops)]);
  details jsonb[] := array_fill(null::jsonb, array[jsonb_array_length(ops)]);
  refused int[] := '{}';
  op jsonb;
  found_server record;
  found_running text;
  n int;
begin
  perform from servers s where s.uuid in (select (o ->> 'serverUuid')::uuid from jsonb_array_elements(ops) o)
  order by s.uuid for no key update;
  for n in 1..count loop
    op := ops -> (n - 1);
    select s.status, s.revision into found_server from servers s where s.uuid = (op ->> 'serverUuid')::uuid;
    if not found or found_server.status in ('CLOSED', 'DELETED') then
      outcomes[n] := 'gone';
    elsif exists (select from tasks t where t.id = (op ->> 'taskId')::uuid) then
      outcomes[n] := 'already-begun';
    else
      select coalesce(t.operation, t.kind) into found_running from tasks t
      where t.server_uuid = (op ->> 'serverUuid')::uuid and t.outcome is null limit 1;
      if found then
        outcomes[n] := 'busy';
        details[n] := jsonb_build_object('running', found_running);
      elsif found_server.revision <> (op ->> 'revision')::int or found_server.status <> op ->> 'statusSeen' then
        outcomes[n] := 'changed';
      elsif op ->> 'unseenHost' is not null
        and cell_host_seen(op ->> 'unseenHost', (op ->> 'unseenMs')::double precision) then
        outcomes[n] := 'host-seen';
      elsif op ->> 'refused' is not null then
        outcomes[n] := 'refused';
        details[n] := jsonb_build_object('why', op ->> 'refused');
      end if;
    end if;
    if outcomes[n] is not null then
      refused := refused || n;
    end if;
  end loop;

  if cardinality(refused) > 0 then
    changes := cell_without(changes, refused);
  end if;
  select array_agg(coalesce(outcomes[a.change], a.kind) order by a.change),
    array_agg(coalesce(details[a.change], a.detail) order by a.change)
  into outcomes, details
  from ledger_apply(changes) as a;

  for n in 1..count loop
    continue when outcomes[n] <> 'committed';
    op := ops -> (n - 1);
    insert into tasks (id, server_uuid, kind, operation, payload)
    values ((op ->> 'taskId')::uuid, (op ->> 'serverUuid')::uuid, 'operate', op ->> 'kind',
      substring(bytes from payload_starts[n] for payload_lengths[n]));
    if (op ->> 'isMove')::boolean then
      insert into migrations (uuid, server_uuid, kind, status, source_host, source_attempt_id, dest_host, dest_attempt_id, runs)
      values ((op ->> 'taskId')::uuid, (op ->> 'serverUuid')::uuid, op ->> 'kind', '', op ->> 'sourceHost',
        op ->> 'sourceAttemptId', '', '', false);
    end if;
    perform cell_write_step(op);
    outcomes[n] := 'begun';
  end loop;
  return query
    select r.at, outcomes[r.at], details[r.at], pg_current_xact_id()::text::bigint & 4294967295
    from generate_series(1, count) as r (at);
end
$$;

-- Commits steps, no two of one task or server. A position that is missing is fenced.
create function cell_commit_steps(steps jsonb, task_ids uuid[], server_uuids uuid[], epochs int[], changes ledger_batch)
  returns table (at int, outcome text, detail jsonb, revision int)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  count constant int := cardinality(task_ids);
  verdicts text[] := array_fill(null::text, array[cardinality(task_ids)]);
  details jsonb[] := array_fill(null::jsonb, array[cardinality(task_ids)]);
  withheld int[] := '{}';
  w jsonb;
  found_task record;
  n int;
begin
  perform from servers s where s.uuid = any (server_uuids) order by s.uuid for no key update;
  perform from tasks t where t.id = any (task_ids) order by t.id for no key update;
  for n in 1..count loop
    w := steps -> (n - 1);
    select t.epoch, t.step, t.outcome, t.stage, t.selection into found_task from tasks t where t.id = task_ids[n] and t.server_uuid = server_uuids[n];
    if not found or found_task.epoch <> epochs[n] then
      verdicts[n] := 'fenced';
    elsif found_task.step = (w ->> 'step')::int + 1 and found_task.stage is not distinct from w ->> 'stage'
      and found_task.outcome is not distinct from w ->> 'outcome' and found_task.selection = (w ->> 'selection')::int then
      verdicts[n] := 'repeated';
    elsif found_task.outcome is not null or found_task.step <> (w ->> 'step')::int then
      verdicts[n] := 'fenced';
    elsif w ->> 'refused' is not null then
      verdicts[n] := 'refused';
      details[n] := jsonb_build_object('why', w ->> 'refused');
    elsif w ->> 'unseenHost' is not null
      and cell_host_seen(w ->> 'unseenHost', (w ->> 'unseenMs')::double precision) then
      verdicts[n] := 'host-seen';
    end if;
    if verdicts[n] is not null then
      withheld := withheld || n;
    end if;
  end loop;
  if cardinality(withheld) > 0 then
    changes := cell_without(changes, withheld);
  end if;
  select array_agg(coalesce(verdicts[a.change], a.kind) order by a.change),
    array_agg(coalesce(details[a.change], a.detail) order by a.change)
  into verdicts, details
  from ledger_apply(changes) as a;
  for n in 1..count loop
    continue when verdicts[n] = 'fenced';
    at := n;
    outcome := verdicts[n];
    detail := details[n];
    revision := case verdicts[n]
      when 'committed' then cell_write_step(steps -> (n - 1))
      when 'repeated' then (select s.revision from servers s where s.uuid = server_uuids[n])
    end;
    return next;
  end loop;
end
$$;
