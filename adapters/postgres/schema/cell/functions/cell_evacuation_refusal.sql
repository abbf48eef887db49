-- Why no server may be evacuated from the host: `host-seen` (it is up, or its agent was heard within the given number of milliseconds) or
-- `host-unfenced` (it is down, but not forced down, and the fence is not waived). Null when servers may be evacuated.
-- Locks the agent's row, then the host's. A transaction that reports the agent's arrival takes the same locks, so it comes before or after
-- this transaction as a whole. The agent of a host may change until its row is locked; then the lock is taken again.
create or replace function cell_evacuation_refusal(host_name text, unseen_ms double precision, fence_waived boolean) returns text
  language plpgsql
as $$
declare
  known_agent text;
  agent_seen_at timestamptz;
  found_host record;
begin
  for tries in 1..5 loop
    select h.agent_id into known_agent from hosts h where h.name = host_name;
    if not found then
      return null;
    end if;
    select a.seen_at into agent_seen_at from agents a where a.id = known_agent for share;
    select h.agent_id, h.up, h.forced_down into found_host from hosts h where h.name = host_name for share;
    exit when found_host.agent_id = known_agent;
  end loop;
  if found_host.forced_down then
    return null;
  end if;
  if found_host.up or agent_seen_at > clock_timestamp() - unseen_ms * interval '1 ms'
    or found_host.agent_id <> known_agent then
    return 'host-seen';
  end if;
  return case when not fence_waived then 'host-unfenced' end;
end
$$;
