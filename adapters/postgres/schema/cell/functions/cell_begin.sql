-- requires: cell_host_seen, cell_without, cell_write_step, ledger_apply
-- Begins operations, each of a different server. `bytes` contains each task's payload, by its start and length. Outcomes: begun,
-- already-begun, closed, busy (detail.running), changed, gone, host-seen, and the refusals of ledger_apply with their detail.
create or replace function cell_begin(
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
    elsif exists (select from closed_tasks c where c.id = (op ->> 'taskId')::uuid) then
      outcomes[n] := 'closed';
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
