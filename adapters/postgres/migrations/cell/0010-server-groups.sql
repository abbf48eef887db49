-- Affinity and anti-affinity of server groups, exact: whoever claims a host for a server of such a group takes the group's lock
-- in the same transaction and looks where the others are.
--
-- A member is where `servers.host` says, so leaving needs no lock and no write: an error, a delete, or a hop moves the host, and
-- the next one that asks sees it. Lock order: groups (by the lock's number) → servers → tasks → what ledger_apply locks.

create table group_members (
  server_uuid uuid primary key,
  group_uuid uuid not null
);
create index on group_members (group_uuid);

-- Locks the groups of these servers until the transaction ends, notes them as members, and answers for those that may not go to
-- their hosts: for affinity with the hosts where the others are, for anti-affinity with the hosts that are full. A caller names no
-- two servers of one group whose answers depend on each other. Members that hold nothing are forgotten on the way; one of
-- them that claims again is noted again.
create function cell_join_groups(
  server_uuids uuid[], group_uuids uuid[], policies text[], most_per_host int[], to_hosts text[]
)
  returns table (at int, conflicting text[])
  language plpgsql
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
    and not exists (select from servers s where s.uuid = m.server_uuid and s.host is not null);
  insert into group_members (server_uuid, group_uuid)
  select * from unnest(server_uuids, group_uuids) as w (server_uuid, group_uuid) order by w.server_uuid
  on conflict do nothing;

  return query
    select w.at::int, o.conflicting
    from unnest(server_uuids, group_uuids, policies, most_per_host, to_hosts) with ordinality
      as w (server_uuid, group_uuid, policy, most, host, at),
    lateral (
      select array_agg(h.host order by h.host collate "C") filter (where w.policy = 'affinity' or h.servers >= w.most) as conflicting,
        bool_or(case w.policy when 'affinity' then h.host <> w.host else h.host = w.host and h.servers >= w.most end) as refused
      from (
        select s.host, count(*) as servers from group_members m join servers s on s.uuid = m.server_uuid
        where m.group_uuid = w.group_uuid and m.server_uuid <> w.server_uuid and s.host is not null
        group by s.host
      ) h
    ) o
    where o.refused;
end
$$;
