-- The writes of a cell's store that touch several tables, a batch at a time: each function is one round trip and one
-- transaction. Callers name no server (or task) twice in a batch; `at` in an answer is the element's position, from 1.
--
-- Lock order: servers (by uuid) → tasks (by id) → what ledger_apply locks. Every statement of a function sees what was
-- committed before it began (read committed), so a check made after a lock is made on what the lock protects.
--
-- The settings force index look-ups: the first calls come when the tables are empty, and their plans stay.

-- Turns the changes at these positions into ones that ledger_apply refuses: they expect a generation that none reaches.
create function cell_without(changes ledger_batch, positions int[]) returns ledger_batch
  language plpgsql
as $$
declare
  step_expected int[] := changes.step_expected;
  at int;
begin
  foreach at in array positions loop
    step_expected[coalesce(changes.change_step_end[at - 1], 0) + 1] := 2147483647;
  end loop;
  changes.step_expected := step_expected;
  return changes;
end
$$;

-- Claim, server, task and its first attempt, or nothing. Bytes come in one value, each part by its start and length: a
-- binary parameter is not escaped and parsed as an array of them would be. Outcomes: dispatched, already-dispatched,
-- closed, and the refusals of ledger_apply with their detail.
create function cell_dispatch(
  server_uuids uuid[], names text[], project_ids text[], user_ids text[], created_at_ms bigint[],
  hosts text[], attempt_ids text[], task_ids uuid[],
  bytes bytea, spec_starts int[], spec_lengths int[], payload_starts int[], payload_lengths int[],
  changes ledger_batch
)
  returns table (at int, outcome text, detail jsonb, xid bigint)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  count constant int := cardinality(server_uuids);
  created int[];
  outcomes text[] := array_fill(null::text, array[cardinality(server_uuids)]);
  details jsonb[];
  refused uuid[];
  done int[];
begin
  with inserted as (
    insert into servers (uuid, status, task_state, spec, project_id, user_id, name, host, attempt_id, created_at)
    select w.uuid, 'BUILD', 'spawning', substring(bytes from w.spec_start for w.spec_length), w.project_id, w.user_id,
      w.name, w.host, w.attempt_id, to_timestamp(w.created_at_ms / 1000.0)
    from unnest(server_uuids, names, project_ids, user_ids, created_at_ms, hosts, attempt_ids, spec_starts, spec_lengths)
      as w (uuid, name, project_id, user_id, created_at_ms, host, attempt_id, spec_start, spec_length)
    order by w.uuid
    on conflict do nothing
    returning servers.uuid
  )
  select coalesce(array_agg(array_position(server_uuids, inserted.uuid)), '{}') into created from inserted;

  if cardinality(created) < count then
    select array_agg(case when w.at = any (created) then null
      when s.status in ('CLOSED', 'DELETED') then 'closed' else 'already-dispatched' end order by w.at)
    into outcomes
    from unnest(server_uuids) with ordinality as w (uuid, at) join servers s on s.uuid = w.uuid;
    changes := cell_without(changes, array(select p.at from generate_series(1, count) as p (at) where p.at <> all (created)));
  end if;

  select array_agg(coalesce(outcomes[a.change], a.kind) order by a.change), array_agg(a.detail order by a.change)
  into outcomes, details
  from ledger_apply(changes) as a;

  done := array(select c.at from unnest(created) as c (at) where outcomes[c.at] = 'committed');
  if cardinality(done) < cardinality(created) then
    refused := array(select server_uuids[c.at] from unnest(created) as c (at) where outcomes[c.at] <> 'committed');
    delete from servers s where s.uuid = any (refused);
  end if;
  insert into tasks (id, server_uuid, kind, payload)
  select task_ids[d.at], server_uuids[d.at], 'build', substring(bytes from payload_starts[d.at] for payload_lengths[d.at])
  from unnest(done) as d (at);
  insert into attempts (task_id, selection, server_uuid, host)
  select task_ids[d.at], 0, server_uuids[d.at], hosts[d.at] from unnest(done) as d (at);

  return query
    select r.at, case outcomes[r.at] when 'committed' then 'dispatched' else outcomes[r.at] end, details[r.at],
      -- Replication names transactions by the low 32 bits.
      pg_current_xact_id()::text::bigint & 4294967295
    from generate_series(1, count) as r (at);
end
$$;

-- Shuts the door for servers that are not here: a dispatch that comes too late fails on the primary key.
create function cell_shut(server_uuids uuid[]) returns void
  language sql
as $$
  insert into servers (uuid, status, spec, project_id, user_id, name, created_at)
  select w.uuid, 'CLOSED', '', '', '', '', now() from unnest(server_uuids) as w (uuid) order by w.uuid
  on conflict do nothing;
$$;

create function cell_close(server_uuids uuid[]) returns table (at int, present boolean)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  perform cell_shut(server_uuids);
  return query
    select w.at::int, s.status not in ('CLOSED', 'DELETED')
    from unnest(server_uuids) with ordinality as w (uuid, at) join servers s on s.uuid = w.uuid;
end
$$;

-- Stores the delete task of each server that holds something, and fences every other task of it. `queued`: the payload is
-- an earlier task's that still runs, or null: the given one was stored. `deleted`: there was nothing to remove.
create function cell_request_delete(
  server_uuids uuid[], task_ids uuid[], bytes bytea, payload_starts int[], payload_lengths int[]
)
  returns table (at int, outcome text, payload bytea)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  present uuid[];
  earlier uuid[];
  fenced uuid[];
  removable uuid[];
begin
  perform cell_shut(server_uuids);
  present := array(
    select l.uuid from (
      select s.uuid, s.status from servers s where s.uuid = any (server_uuids) order by s.uuid for no key update
    ) l
    where l.status not in ('CLOSED', 'DELETED')
  );
  perform from tasks t where t.server_uuid = any (present) and t.ended_at is null order by t.id for no key update;
  earlier := array(
    select t.server_uuid from tasks t where t.server_uuid = any (present) and t.kind = 'delete' and t.ended_at is null
  );
  fenced := array(select p.uuid from unnest(present) as p (uuid) where p.uuid <> all (earlier));
  removable := array(select s.uuid from servers s where s.uuid = any (fenced) and s.host is not null);

  update tasks t set epoch = t.epoch + 1, ended_at = now(), outcome = 'cancelled'
  where t.server_uuid = any (fenced) and t.ended_at is null;
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
  where w.uuid = any (removable);

  return query
    select w.at::int, case when t.id is null then 'deleted' else 'queued' end,
      case when w.uuid = any (earlier) then t.payload end
    from unnest(server_uuids) with ordinality as w (uuid, at)
    left join tasks t on t.server_uuid = w.uuid and t.kind = 'delete' and t.ended_at is null;
end
$$;

-- Gives these tasks, which the caller has locked, to the conductor.
create function cell_own(conductor uuid, task_ids uuid[])
  returns table (id uuid, payload bytea, epoch int, selection int, host text, attempt_id text)
  language sql
as $$
  update tasks t set owner = conductor, epoch = t.epoch + 1
  from servers s
  where t.id = any (task_ids) and s.uuid = t.server_uuid
  returning t.id, t.payload, t.epoch, t.selection, s.host, s.attempt_id;
$$;

create function cell_take(conductor uuid, task_ids uuid[])
  returns table (id uuid, payload bytea, epoch int, selection int, host text, attempt_id text)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  return query select o.* from cell_own(conductor, array(
    select t.id from tasks t
    where t.id = any (task_ids) and t.ended_at is null
      and (t.owner is null or t.owner = conductor
        or not exists (select from conductors c where c.id = t.owner and c.lease_expires_at > now()))
    order by t.id for no key update of t
  )) as o;
end
$$;

-- Skips what others have locked, so that conductors sweeping at once neither wait for each other nor take a task twice.
create function cell_sweep(conductor uuid, untaken_ms double precision, tasks_max int)
  returns table (id uuid, payload bytea, epoch int, selection int, host text, attempt_id text)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  found_ids uuid[] := array(
    select t.id from tasks t
    where t.ended_at is null
      and case when t.owner is null then t.created_at <= now() - untaken_ms * interval '1 ms'
        else t.owner <> conductor
          and not exists (select from conductors c where c.id = t.owner and c.lease_expires_at > now()) end
    order by t.created_at, t.id limit tasks_max for no key update of t skip locked
  );
begin
  return query
    select o.* from cell_own(conductor, found_ids) as o order by array_position(found_ids, o.id);
end
$$;

-- Locks the servers and tasks of these claims; which of them may be written for, by position: under the task's epoch, not
-- ended (`repeated` false), or ended with `outcome` by the same write before (`repeated` true).
create function cell_claims(task_ids uuid[], server_uuids uuid[], epochs int[], outcome text)
  returns table (at int, repeated boolean)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  perform from servers s where s.uuid = any (server_uuids) order by s.uuid for no key update;
  return query
    select l.at::int, l.ended_at is not null from (
      select w.at, w.epoch as claimed, t.epoch, t.ended_at, t.outcome
      from unnest(task_ids, server_uuids, epochs) with ordinality as w (id, server_uuid, epoch, at)
      join tasks t on t.id = w.id and t.server_uuid = w.server_uuid
      order by t.id for no key update of t
    ) l
    where l.epoch = l.claimed and (l.ended_at is null or l.outcome = cell_claims.outcome);
end
$$;

-- ACTIVE, where the attempt is still the server's home. Returns the positions of what is committed.
create function cell_commit_active(
  task_ids uuid[], server_uuids uuid[], epochs int[], selections int[], attempt_ids text[]
)
  returns setof int
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  fresh int[];
  committed int[];
begin
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

-- Gives back what each `from` selection holds and claims what its `to` takes. No row: fenced. An alternate that was refused
-- is noted as skipped; the caller adds why, in the same transaction.
create function cell_hop(
  task_ids uuid[], server_uuids uuid[], epochs int[], from_selections int[], reasons text[],
  to_selections int[], to_hosts text[], to_attempt_ids text[], changes ledger_batch
)
  returns table (at int, outcome text, detail jsonb)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  count constant int := cardinality(task_ids);
  owned int[] := array(select c.at from cell_claims(task_ids, server_uuids, epochs, null) as c);
  outcomes text[];
  details jsonb[];
begin
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

-- Ends these tasks with `outcome`, and gives back what their servers hold. Returns the positions of what is committed;
-- `repeated`: it was already.
create function cell_give_back(task_ids uuid[], server_uuids uuid[], epochs int[], outcome text, changes ledger_batch)
  returns table (at int, repeated boolean)
  language plpgsql
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
  if cardinality(fresh) < cardinality(task_ids) then
    changes := cell_without(changes,
      array(select p.at from generate_series(1, cardinality(task_ids)) as p (at) where p.at <> all (fresh)));
  end if;
  if exists (select from ledger_apply(changes) as a where a.kind <> 'committed' and a.change = any (fresh)) then
    raise exception 'the ledger refused a release';
  end if;
  update tasks t set ended_at = now(), outcome = cell_give_back.outcome
  from unnest(fresh) as f (at) where t.id = task_ids[f.at];
  return query select c.at, c.at <> all (fresh) from unnest(committed) as c (at);
end
$$;

create function cell_commit_error(
  task_ids uuid[], server_uuids uuid[], epochs int[], selections int[], attempt_reasons text[], reasons text[],
  changes ledger_batch
)
  returns setof int
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  fresh int[];
  committed int[];
begin
  select coalesce(array_agg(c.at) filter (where not c.repeated), '{}'), array_agg(c.at) into fresh, committed
  from cell_give_back(task_ids, server_uuids, epochs, 'error', changes) as c;
  update servers s
  set status = 'ERROR', task_state = null, host = null, attempt_id = null, fault = reasons[f.at], fault_at = now(),
    updated_at = now()
  from unnest(fresh) as f (at) where s.uuid = server_uuids[f.at];
  update attempts a set ended_at = now(), result = 'failed', reason = attempt_reasons[f.at]
  from unnest(fresh) as f (at)
  where a.task_id = task_ids[f.at] and a.selection = selections[f.at] and a.result is null;
  return query select c.at from unnest(committed) as c (at);
end
$$;

create function cell_commit_deleted(task_ids uuid[], server_uuids uuid[], epochs int[], changes ledger_batch)
  returns setof int
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  fresh int[];
  committed int[];
begin
  select coalesce(array_agg(c.at) filter (where not c.repeated), '{}'), array_agg(c.at) into fresh, committed
  from cell_give_back(task_ids, server_uuids, epochs, 'deleted', changes) as c;
  update servers s
  set status = 'DELETED', task_state = null, host = null, attempt_id = null, deleted_at = now(), updated_at = now()
  from unnest(fresh) as f (at) where s.uuid = server_uuids[f.at];
  return query select c.at from unnest(committed) as c (at);
end
$$;
