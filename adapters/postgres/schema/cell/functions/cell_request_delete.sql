-- requires: cell_add_task, cell_shut
-- Stores the delete task of each server that holds something, and fences all its other tasks. `queued`: the payload is that of an earlier
-- task that is still running, or null when the given task was stored. `deleted`: there was nothing to remove.
-- A server that does not exist here costs more than one that does, because its UUID is marked as closed after the others were locked. So
-- two batches with such servers may deadlock, and are retried.
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
  -- Existing servers, and those of them that have a home.
  present uuid[];
  homed uuid[];
  open_tasks uuid[];
  -- Servers with a delete task that is still running, and all other existing servers.
  earlier uuid[];
  fenced uuid[];
begin
  -- The common case: servers with a home and no task. The condition on the home is written so that no partial index matches it, because the
  -- rows must be found by key.
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
  -- The servers that were closed before, perhaps only under an earlier assignment.
  if cardinality(present) < known then
    update servers s set revision = 2147483647, updated_at = now()
    where s.uuid = any (server_uuids) and s.status = 'CLOSED' and s.revision < 2147483647;
  end if;
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
