-- requires: cell_without, ledger_apply, ledger_claim_together
-- Writes the claim, the server, the task and its first attempt, or nothing. Bytes come in one value, each part by its start and length,
-- because a binary parameter is not escaped and parsed as an array of byte strings would be. Outcomes: dispatched, already-dispatched,
-- closed, quarantined, and the refusals of ledger_apply with their detail.
create or replace function cell_dispatch(
  server_uuids uuid[], names text[], project_ids text[], user_ids text[], created_at_ms bigint[],
  hosts text[], attempt_ids text[], task_ids uuid[],
  bytes bytea, spec_starts int[], spec_lengths int[], payload_starts int[], payload_lengths int[],
  changes ledger_batch
)
  returns table (at int, outcome text, detail jsonb, xid bigint)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  count constant int := cardinality(server_uuids);
  -- Replication identifies transactions by the low 32 bits.
  this_xid constant bigint := pg_current_xact_id()::text::bigint & 4294967295;
  -- Another guest of these servers may run here.
  quarantined constant uuid[] := array(
    select q.server_uuid::uuid from quarantined_guests q where q.server_uuid = any (server_uuids::text[]) and q.holds
      and not q.condemned
  );
  created int[];
  outcomes text[];
  details jsonb[];
  refused uuid[];
  done int[];
begin
  begin
    if cardinality(quarantined) > 0 then
      raise sqlstate 'BT002';
    end if;
    insert into servers (uuid, status, task_state, spec, project_id, user_id, name, host, attempt_id, created_at)
    select w.uuid, 'BUILD', 'spawning', substring(bytes from w.spec_start for w.spec_length), w.project_id, w.user_id,
      w.name, w.host, w.attempt_id, to_timestamp(w.created_at_ms / 1000.0)
    from unnest(server_uuids, names, project_ids, user_ids, created_at_ms, hosts, attempt_ids, spec_starts, spec_lengths)
      as w (uuid, name, project_id, user_id, created_at_ms, host, attempt_id, spec_start, spec_length)
    order by w.uuid;
    perform ledger_claim_together(changes);
    insert into tasks (id, server_uuid, kind, payload)
    select w.id, w.server_uuid, 'build', substring(bytes from w.payload_start for w.payload_length)
    from unnest(task_ids, server_uuids, payload_starts, payload_lengths) as w (id, server_uuid, payload_start, payload_length);
    insert into attempts (task_id, selection, server_uuid, host)
    select w.task_id, 0, w.server_uuid, w.host from unnest(task_ids, server_uuids, hosts) as w (task_id, server_uuid, host);
    return query select r.at, 'dispatched', null::jsonb, this_xid from generate_series(1, count) as r (at);
    return;
  exception when unique_violation or sqlstate 'BT002' then
    null;
  end;

  with inserted as (
    insert into servers (uuid, status, task_state, spec, project_id, user_id, name, host, attempt_id, created_at)
    select w.uuid, 'BUILD', 'spawning', substring(bytes from w.spec_start for w.spec_length), w.project_id, w.user_id,
      w.name, w.host, w.attempt_id, to_timestamp(w.created_at_ms / 1000.0)
    from unnest(server_uuids, names, project_ids, user_ids, created_at_ms, hosts, attempt_ids, spec_starts, spec_lengths)
      as w (uuid, name, project_id, user_id, created_at_ms, host, attempt_id, spec_start, spec_length)
    where w.uuid <> all (quarantined)
    order by w.uuid
    on conflict do nothing
    returning servers.uuid
  )
  select coalesce(array_agg(array_position(server_uuids, inserted.uuid)), '{}') into created from inserted;
  outcomes := array_fill(null::text, array[count]);
  if cardinality(created) < count then
    -- A closed server may be gone by now: another dispatch has just opened the cell to it (cell_reopen).
    select array_agg(case when w.at = any (created) then null
      when s.status not in ('CLOSED', 'DELETED') then 'already-dispatched'
      when w.uuid = any (quarantined) then 'quarantined' else 'closed' end order by w.at)
    into outcomes
    from unnest(server_uuids) with ordinality as w (uuid, at) left join servers s on s.uuid = w.uuid;
    changes := cell_without(changes, array(select p.at from generate_series(1, count) as p (at) where p.at <> all (created)));
  end if;

  select array_agg(coalesce(outcomes[a.change], case a.kind when 'committed' then 'dispatched' else a.kind end) order by a.change),
    array_agg(a.detail order by a.change)
  into outcomes, details
  from ledger_apply(changes) as a;

  done := array(select c.at from unnest(created) as c (at) where outcomes[c.at] = 'dispatched');
  if cardinality(done) < cardinality(created) then
    refused := array(select server_uuids[c.at] from unnest(created) as c (at) where outcomes[c.at] <> 'dispatched');
    delete from servers s where s.uuid = any (refused);
  end if;
  insert into tasks (id, server_uuid, kind, payload)
  select task_ids[d.at], server_uuids[d.at], 'build', substring(bytes from payload_starts[d.at] for payload_lengths[d.at])
  from unnest(done) as d (at);
  insert into attempts (task_id, selection, server_uuid, host)
  select task_ids[d.at], 0, server_uuids[d.at], hosts[d.at] from unnest(done) as d (at);
  return query select r.at, outcomes[r.at], details[r.at], this_xid from generate_series(1, count) as r (at);
end
$$;
