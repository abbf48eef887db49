-- requires: cell_without, ledger_apply
-- Changes the specs and allocations of servers at rest in one guarded write, for a port that is attached or detached. No server occurs
-- twice. `bytes` contains the new specs, each by its start and length. Outcomes: patched, gone, busy (detail.running), changed (the server
-- has another revision than the change was made for), and the refusals of ledger_apply with their detail. A server that was shelved and
-- offloaded is on no host, holds nothing, and keeps its ports.
create or replace function cell_patch_holdings(
  server_uuids uuid[], revisions int[], bytes bytea, spec_starts int[], spec_lengths int[], changes ledger_batch
)
  returns table (at int, outcome text, detail jsonb, xid bigint)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  outcomes text[];
  details jsonb[];
begin
  perform from servers s where s.uuid = any (server_uuids) order by s.uuid for no key update;
  select array_agg(case when s.uuid is null or (s.host is null and s.status <> 'SHELVED_OFFLOADED') then 'gone' when r.running is not null then 'busy'
      when s.revision <> w.revision then 'changed' end order by w.at),
    array_agg(case when r.running is not null then jsonb_build_object('running', r.running) end order by w.at)
  into outcomes, details
  from unnest(server_uuids, revisions) with ordinality as w (uuid, revision, at)
  left join servers s on s.uuid = w.uuid
  left join lateral (
    select coalesce(t.operation, t.kind) as running from tasks t where t.server_uuid = w.uuid and t.outcome is null limit 1
  ) r on true;
  changes := cell_without(changes, array(
    select p.at from generate_subscripts(outcomes, 1) as p (at) where outcomes[p.at] is not null
  ));
  select array_agg(coalesce(outcomes[a.change], case a.kind when 'committed' then 'patched' else a.kind end) order by a.change),
    array_agg(coalesce(details[a.change], a.detail) order by a.change)
  into outcomes, details
  from ledger_apply(changes) as a;
  update servers s
  set spec = substring(bytes from spec_starts[p.at] for spec_lengths[p.at]), revision = s.revision + 1, updated_at = now()
  from generate_subscripts(outcomes, 1) as p (at) where outcomes[p.at] = 'patched' and s.uuid = server_uuids[p.at];
  return query
    select p.at, outcomes[p.at], details[p.at], pg_current_xact_id()::text::bigint & 4294967295
    from generate_subscripts(outcomes, 1) as p (at);
end
$$;
