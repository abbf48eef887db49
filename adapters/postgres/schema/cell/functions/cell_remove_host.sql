-- requires: ledger_lock_trees
-- Removes a host and its provider tree. Returns `removed`, or why nothing was changed: `unknown`, `has-servers`, `has-moves`, `has-allocations`,
-- `has-quarantined-guests`, or `agent-seen` (a conductor heard its agent within the given number of milliseconds, and no operator has forced the host
-- down). The agent's arrival locks the agent's row, so it comes before or after this transaction as a whole. A tree that the agent reported before it goes
-- with the host, and the host does not come up without it: only a host with a root provider becomes a new one.
-- Locks: reports of trees, the agent, the host, then the providers and inventories of its tree. Claims wait for the inventories, and then do not find
-- them.
create or replace function cell_remove_host(host_name text, unseen_ms double precision) returns text
  language plpgsql
as $$
declare
  host_root uuid;
  known_agent text;
  agent_seen_at timestamptz;
  found_host record;
  members int[];
begin
  perform pg_advisory_xact_lock(7236418052);
  select h.agent_id, h.root_provider into known_agent, host_root from hosts h where h.name = host_name;
  if not found then
    return 'unknown';
  end if;
  select a.seen_at into agent_seen_at from agents a where a.id = known_agent for update;
  select h.agent_id, h.forced_down into found_host from hosts h where h.name = host_name for update;
  if not found then
    return 'unknown';
  end if;
  perform ledger_lock_trees(array[host_root]);
  members := array(
    select p.id from resource_providers r join resource_providers p on p.root_id = r.id where r.uuid = host_root order by p.id
  );
  if exists (select from servers s where s.host = host_name and s.status not in ('DELETED', 'CLOSED')) then
    return 'has-servers';
  end if;
  if exists (select from migrations m where not m.ended and (m.source_host = host_name or m.dest_host = host_name)) then
    return 'has-moves';
  end if;
  if exists (select from migrations m where m.holds_source and m.source_host = host_name)
    or exists (select from allocations a where a.provider_id = any (members)) then
    return 'has-allocations';
  end if;
  if exists (select from quarantined_guests q where q.host = host_name and not q.condemned) then
    return 'has-quarantined-guests';
  end if;
  if not found_host.forced_down
    and (found_host.agent_id <> known_agent or agent_seen_at > clock_timestamp() - unseen_ms * interval '1 ms') then
    return 'agent-seen';
  end if;

  delete from reported_ratios w using resource_providers p where w.provider = p.uuid and p.id = any (members);
  delete from ratio_overrides o where o.root = host_root;
  delete from inventories v where v.provider_id = any (members);
  delete from provider_traits q where q.provider_id = any (members);
  delete from provider_aggregates q where q.provider_id = any (members);
  -- One statement, so that parents and children go together.
  delete from resource_providers p where p.id = any (members);
  delete from quarantined_guests q where q.host = host_name;
  delete from compared_hosts c where c.host = host_name;
  delete from hosts h where h.name = host_name;
  return 'removed';
end
$$;
