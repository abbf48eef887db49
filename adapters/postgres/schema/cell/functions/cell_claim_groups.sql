-- Enforces affinity and anti-affinity of server groups exactly. Every transaction that adds a place to a server of such a group (a first
-- claim, a hop, a move's claim of a destination) takes the group's lock here and checks where the others are. A transaction that only takes
-- places away needs neither.
-- Locks the groups of these servers until the transaction ends, records the servers as members, and returns those that may not go to their
-- hosts: for affinity with the hosts where the others are, for anti-affinity with the hosts that are full. A caller must not name two
-- servers of one group whose answers depend on each other. Members that hold nothing are removed on the way; one of them that claims again
-- is recorded again.
-- A server counts on both ends of a move until the move has ended: no other server may take the destination that it has claimed, and the
-- source that it may go back to stays reserved for it. `in_flight` means that the conflict is only with servers that are being built or
-- whose task state is one of `leaving_states`.
-- It is planned like the other functions. Tasks and migrations are looked up for each row.
create or replace function cell_claim_groups(
  server_uuids uuid[], group_uuids uuid[], policies text[], most_per_host int[], to_hosts text[], leaving_states text[]
)
  returns table (at int, conflicting text[], in_flight boolean)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  lock_number int;
begin
  for lock_number in select distinct hashtext(g::text) as number from unnest(group_uuids) as g order by number loop
    perform pg_advisory_xact_lock(1735553392, lock_number);
  end loop;

  delete from group_members m
  where m.group_uuid = any (group_uuids)
    and (select s.host from servers s where s.uuid = m.server_uuid) is null
    and (select true from migrations r where r.server_uuid = m.server_uuid and not r.ended limit 1) is null;
  insert into group_members (server_uuid, group_uuid)
  select * from unnest(server_uuids, group_uuids) as w (server_uuid, group_uuid) order by w.server_uuid
  on conflict do nothing;

  return query
    select w.at::int, o.conflicting, not o.for_good
    from unnest(server_uuids, group_uuids, policies, most_per_host, to_hosts) with ordinality
      as w (server_uuid, group_uuid, policy, most, host, at),
    lateral (
      select array_agg(h.host order by h.host collate "C") filter (where w.policy = 'affinity' or h.servers >= w.most) as conflicting,
        bool_or(case w.policy when 'affinity' then h.host <> w.host else h.host = w.host and h.servers >= w.most end) as refused,
        bool_or(case w.policy when 'affinity' then h.host <> w.host and h.settled > 0 else h.host = w.host and h.settled >= w.most end)
          as for_good
      from (
        select p.host, count(*) as servers, count(*) filter (where not p.leaving) as settled
        from (
          select distinct m.server_uuid, x.host,
            s.status = 'BUILD' or coalesce(s.task_state = any (leaving_states), false) as leaving
          from group_members m
          join servers s on s.uuid = m.server_uuid
          left join lateral (
            select r.source_host, r.dest_host from migrations r where r.server_uuid = m.server_uuid and not r.ended limit 1
          ) g on true
          cross join lateral (values (s.host), (g.source_host), (g.dest_host)) as x (host)
          where m.group_uuid = w.group_uuid and m.server_uuid <> w.server_uuid and x.host <> ''
        ) p
        group by p.host
      ) h
    ) o
    where o.refused;
end
$$;
