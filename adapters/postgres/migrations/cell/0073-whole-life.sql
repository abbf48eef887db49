-- What is told of a server's whole life: which conductors carried a task and from when on, when an operation reached each of its stages, and
-- which tasks a server had. All of it is written by updates of rows that are written anyway, in columns that no index has, so that no row
-- more is written and the updates stay heap-only.

-- Lists with the oldest entry first. A taking is `<milliseconds since the epoch>/<conductor>/<its name>`, a stage
-- `<milliseconds since the epoch>/<selection>/<stage>`.
alter table tasks
  add column takings text[] not null default '{}',
  add column stages text[] not null default '{}';
-- Operations and deletes, the oldest first. Tasks that have ended are in no index by server; a build's is found by its attempts.
alter table servers add column later_tasks uuid[] not null default '{}';

-- The list with one more entry, of now, and without its oldest ones where it has more than `most`.
create function cell_note(list text[], entry text, most int) returns text[]
  language sql
as $$
  select list[greatest(1, cardinality(list) - most + 2):]
    || (floor(extract(epoch from clock_timestamp()) * 1000)::bigint::text || '/' || entry);
$$;

-- The list with this task, without the oldest ones where it has more than 100.
create function cell_add_task(list uuid[], task uuid) returns uuid[]
  language sql
as $$
  select case when task = any (list) then list else list[greatest(1, cardinality(list) - 98):] || task end;
$$;

-- As in 0027, and notes the conductor.
create or replace function cell_take(conductor uuid, task_ids uuid[])
  returns table (id uuid, payload bytea, epoch int, selection int, host text, attempt_id text)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  taken_ids uuid[];
  -- The time is added in the update: a conductor that waits for a row takes it when it has the row.
  taker constant text := conductor::text || '/' || coalesce((select c.name from conductors c where c.id = conductor), '');
begin
  with taken as (
    update tasks t set owner = conductor, epoch = t.epoch + 1,
      takings = case when t.owner = conductor then t.takings else cell_note(t.takings, taker, 20) end
    from (select u.id from unnest(task_ids) as u (id) order by u.id) w
    where t.id = w.id and t.ended_at is null
      and (t.owner is null or t.owner = conductor
        or not exists (select from conductors c where c.id = t.owner and c.lease_expires_at > now()))
    returning t.id
  )
  select array_agg(taken.id) into taken_ids from taken;
  return query
    select t.id, t.payload, t.epoch, t.selection, s.host, s.attempt_id
    from tasks t join servers s on s.uuid = t.server_uuid where t.id = any (taken_ids);
end
$$;

-- As in 0004, and notes the conductor.
create or replace function cell_own(conductor uuid, task_ids uuid[])
  returns table (id uuid, payload bytea, epoch int, selection int, host text, attempt_id text)
  language sql
as $$
  update tasks t set owner = conductor, epoch = t.epoch + 1,
    takings = case when t.owner = conductor then t.takings else cell_note(
      t.takings, conductor::text || '/' || coalesce((select c.name from conductors c where c.id = conductor), ''), 20) end
  from servers s
  where t.id = any (task_ids) and s.uuid = t.server_uuid
  returning t.id, t.payload, t.epoch, t.selection, s.host, s.attempt_id;
$$;

-- As in 0027, and notes the delete task with its server.
create or replace function cell_request_delete(
  server_uuids uuid[], task_ids uuid[], bytes bytea, payload_starts int[], payload_lengths int[]
)
  returns table (at int, outcome text, payload bytea)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  written int;
  known int;
  -- Servers that are here; of these, those that have a home.
  present uuid[];
  homed uuid[];
  open_tasks uuid[];
  -- Servers with a delete task that still runs, and all others that are here.
  earlier uuid[];
  fenced uuid[];
begin
  -- Servers that are at home and at rest. What has a home is asked for in a way that no partial index answers: these are named by key.
  begin
    update servers s set task_state = 'deleting', deleted_at = null, updated_at = now(),
      later_tasks = cell_add_task(s.later_tasks, w.task_id)
    from (select u.* from unnest(server_uuids, task_ids) as u (uuid, task_id) order by u.uuid) w
    where s.uuid = w.uuid and case when s.host is not null then s.status not in ('CLOSED', 'DELETED') end;
    get diagnostics written = row_count;
    if written < cardinality(server_uuids)
      or exists (select from tasks t where t.server_uuid = any (server_uuids) and t.outcome is null)
    then
      raise exception using errcode = 'BT002';
    end if;
    update attempts a set ended_at = now(), result = 'cancelled' where a.server_uuid = any (server_uuids) and a.result is null;
    insert into tasks (id, server_uuid, kind, payload)
    select w.id, w.uuid, 'delete', substring(bytes from w.payload_start for w.payload_length)
    from unnest(task_ids, server_uuids, payload_starts, payload_lengths) as w (id, uuid, payload_start, payload_length);
    return query select r.at, 'queued', null::bytea from generate_series(1, written) as r (at);
    return;
  exception when sqlstate 'BT002' then
    null;
  end;

  for tries in 1..2 loop
    select count(*), coalesce(array_agg(l.uuid) filter (where l.status not in ('CLOSED', 'DELETED')), '{}'),
      coalesce(array_agg(l.uuid) filter (where l.host is not null), '{}')
    into known, present, homed
    from (
      select s.uuid, s.status, s.host from servers s where s.uuid = any (server_uuids) order by s.uuid for no key update
    ) l;
    exit when known = cardinality(server_uuids);
    perform cell_shut(server_uuids);
  end loop;
  select coalesce(array_agg(l.server_uuid) filter (where l.kind = 'delete'), '{}'), coalesce(array_agg(l.id), '{}')
  into earlier, open_tasks
  from (
    select t.id, t.server_uuid, t.kind from tasks t
    where t.server_uuid = any (present) and t.outcome is null order by t.id for no key update
  ) l;
  fenced := case when earlier = '{}' then present
    else array(select p.uuid from unnest(present) as p (uuid) where p.uuid <> all (earlier)) end;

  if cardinality(open_tasks) > cardinality(earlier) then
    update tasks t set epoch = t.epoch + 1, ended_at = now(), outcome = 'cancelled'
    where t.id = any (open_tasks) and t.server_uuid = any (fenced);
  end if;
  update attempts a set ended_at = now(), result = 'cancelled' where a.server_uuid = any (fenced) and a.result is null;
  update servers s
  set status = case when s.host is null then 'DELETED' else s.status end,
    task_state = case when s.host is null then null else 'deleting' end,
    deleted_at = case when s.host is null then now() end,
    later_tasks = case when s.host is null then s.later_tasks
      else cell_add_task(s.later_tasks, task_ids[array_position(server_uuids, s.uuid)]) end,
    updated_at = now()
  where s.uuid = any (fenced);
  insert into tasks (id, server_uuid, kind, payload)
  select w.id, w.uuid, 'delete', substring(bytes from w.payload_start for w.payload_length)
  from unnest(task_ids, server_uuids, payload_starts, payload_lengths) as w (id, uuid, payload_start, payload_length)
  where w.uuid = any (homed) and w.uuid = any (fenced);

  return query
    select w.at::int, case when w.uuid = any (earlier) or w.uuid = any (homed) and w.uuid = any (fenced) then 'queued' else 'deleted' end,
      case when w.uuid = any (earlier) then (
        select t.payload from tasks t where t.server_uuid = w.uuid and t.kind = 'delete' and t.outcome is null
      ) end
    from unnest(server_uuids) with ordinality as w (uuid, at);
end
$$;

-- As in 0035, and notes the stage and, with the server, the task.
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
