-- Takes, commits and deletes in the way of 0026: written at once under conditions, in lock order, the careful way only where that fails.
-- Every row that was locked first was a record of the log, and a statement.
--
-- Tasks that are named by id are open by `ended_at is null`, of which there is no index from 0028 on: there is one of `outcome is
-- null` (the two are written together), which Postgres takes to hold next to nothing, and would walk for each batch, locking in its
-- order.

-- Servers are read by a statement of its own, after the tasks are locked: whoever hops writes both, and what is told here must be of
-- one moment.
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
begin
  with taken as (
    update tasks t set owner = conductor, epoch = t.epoch + 1
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

-- Gives back all that these consumers hold, so that they exist no more. Those that hold nothing are none of its business.
create or replace function ledger_give_back(consumer_uuids uuid[]) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  provider_ids int[];
  class_ids int[];
  amounts bigint[];
  written int;
begin
  delete from consumers r using (select u.uuid from unnest(consumer_uuids) as u (uuid) order by u.uuid) w where r.uuid = w.uuid;
  with gone as (
    delete from allocations a where a.consumer_uuid = any (consumer_uuids)
    returning a.provider_id, a.class_id, a.amount
  )
  select array_agg(d.provider_id), array_agg(d.class_id), array_agg(d.amount)
  into provider_ids, class_ids, amounts
  from (
    select gone.provider_id, gone.class_id, sum(gone.amount)::bigint as amount from gone group by 1, 2 order by 1, 2
  ) d;
  update inventories v set used = v.used - w.amount
  from unnest(provider_ids, class_ids, amounts) as w (provider_id, class_id, amount)
  where v.provider_id = w.provider_id and v.class_id = w.class_id;
  get diagnostics written = row_count;
  if written <> coalesce(cardinality(provider_ids), 0) then
    raise exception 'consumers % hold what no inventory has', consumer_uuids using errcode = 'data_corrupted';
  end if;
end
$$;

-- Ends these tasks with `outcome`, each under its epoch. Raises BT002 if one has ended already or is another conductor's; the
-- caller, who has locked their servers, undoes what was written.
create function cell_end_tasks(task_ids uuid[], server_uuids uuid[], epochs int[], task_outcome text) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  written int;
begin
  update tasks t set ended_at = now(), outcome = task_outcome
  from (
    select u.* from unnest(task_ids, server_uuids, epochs) as u (id, server_uuid, epoch) order by u.id
  ) w
  where t.id = w.id and t.server_uuid = w.server_uuid and t.epoch = w.epoch and t.ended_at is null;
  get diagnostics written = row_count;
  if written < cardinality(task_ids) then
    raise exception using errcode = 'BT002';
  end if;
end
$$;

-- ACTIVE, where the attempt is still the server's home. Returns the positions of what is committed.
create or replace function cell_commit_active(
  task_ids uuid[], server_uuids uuid[], epochs int[], selections int[], attempt_ids text[]
)
  returns setof int
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  written int;
  fresh int[];
  committed int[];
begin
  begin
    update servers s set status = 'ACTIVE', task_state = null, launched_at = now(), updated_at = now()
    from (select u.* from unnest(server_uuids, attempt_ids) as u (uuid, attempt_id) order by u.uuid) w
    where s.uuid = w.uuid and s.attempt_id = w.attempt_id;
    get diagnostics written = row_count;
    if written < cardinality(task_ids) then
      raise exception using errcode = 'BT002';
    end if;
    perform cell_end_tasks(task_ids, server_uuids, epochs, 'success');
    update attempts a set ended_at = now(), result = 'success', reason = null
    from unnest(task_ids, selections) as w (task_id, selection) where a.task_id = w.task_id and a.selection = w.selection;
    return query select generate_series(1, cardinality(task_ids));
    return;
  exception when sqlstate 'BT002' then
    null;
  end;

  select coalesce(array_agg(c.at) filter (where not c.repeated), '{}'), array_agg(c.at) into fresh, committed
  from cell_claims(task_ids, server_uuids, epochs, 'success') as c
  join servers s on s.uuid = server_uuids[c.at]
  where s.attempt_id = attempt_ids[c.at] and (not c.repeated or s.status = 'ACTIVE');

  update tasks t set ended_at = now(), outcome = 'success' from unnest(fresh) as f (at) where t.id = task_ids[f.at];
  update servers s set status = 'ACTIVE', task_state = null, launched_at = now(), updated_at = now()
  from unnest(fresh) as f (at) where s.uuid = server_uuids[f.at];
  update attempts a set ended_at = now(), result = 'success', reason = null
  from unnest(fresh) as f (at) where a.task_id = task_ids[f.at] and a.selection = selections[f.at];
  return query select c.at from unnest(committed) as c (at);
end
$$;

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
    perform cell_end_tasks(task_ids, server_uuids, epochs, 'deleted');
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

-- Stores the delete task of each server that holds something, and fences every other task of it. `queued`: the payload is
-- an earlier task's that still runs, or null: the given one was stored. `deleted`: there was nothing to remove.
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
    update servers s set task_state = 'deleting', deleted_at = null, updated_at = now()
    from (select u.uuid from unnest(server_uuids) as u (uuid) order by u.uuid) w
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
