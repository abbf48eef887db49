-- Marks hosts as down whose agents were not seen for the given time, beginning with those that were unseen for longest. It limits how
-- many hosts are down for silence alone (core/tasks/expiry-limit.ts). Returns all unseen hosts, and whether they are down now. It first
-- checks whether any agent is unseen, which is rarely the case.
-- Locks: one call at a time, because two conductors would otherwise each use up the limit; then the hosts that go down, by name.
create or replace function cell_expire_hosts(unseen_ms double precision, share_max double precision, count_min int)
  returns table (name text, down boolean)
  language plpgsql
as $$
declare
  unseen_agents text[];
  unseen text[];
  room int;
begin
  unseen_agents := array(select a.id from agents a where a.seen_at <= now() - unseen_ms * interval '1 ms');
  if unseen_agents = '{}' or not exists (select from hosts h where h.up and h.agent_id = any (unseen_agents)) then
    return;
  end if;
  perform pg_advisory_xact_lock(7236418053);
  unseen := array(
    select h.name from agents a join hosts h on h.agent_id = a.id and h.up
    where a.seen_at <= now() - unseen_ms * interval '1 ms' order by a.seen_at, h.name collate "C"
  );
  select greatest(0, greatest(count_min, floor(share_max * count(*))::int) - count(*) filter (where not h.up and not h.disabled))
  into room from hosts h where not h.forced_down;
  perform from hosts h where h.name = any (unseen[:room]) order by h.name collate "C" for no key update;
  update hosts h set up = false, updated_at = now() where h.name = any (unseen[:room]) and h.up;
  return query select u.host, u.at <= room from unnest(unseen) with ordinality as u (host, at);
end
$$;
