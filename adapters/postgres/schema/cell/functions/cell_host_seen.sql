-- Whether a host is seen: it is up, or its agent was heard within the given number of milliseconds. Locks the agent's row, so that a
-- report of the agent's arrival comes before or after this transaction as a whole. A host that is forced down counts as down.
-- Evacuations that older versions of the services plan use this function; newer ones use cell_evacuation_refusal.
create or replace function cell_host_seen(host_name text, unseen_ms double precision) returns boolean
  language sql
as $$
  select exists (
    select from (
      select h.up, h.forced_down, a.seen_at
      from hosts h join agents a on a.id = h.agent_id where h.name = host_name for share of a
    ) w
    where not w.forced_down and (w.up or w.seen_at > clock_timestamp() - unseen_ms * interval '1 ms')
  );
$$;
