-- As before, but planned as the other functions are: its plans came of the first calls, when the tables were small, and read all servers
-- until they were analyzed. Nowhere is a server asked for by having a host: that would find the index of all that have one.
create or replace function cell_join_groups(
  server_uuids uuid[], group_uuids uuid[], policies text[], most_per_host int[], to_hosts text[]
)
  returns table (at int, conflicting text[])
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
    and (select s.host from servers s where s.uuid = m.server_uuid) is null;
  insert into group_members (server_uuid, group_uuid)
  select * from unnest(server_uuids, group_uuids) as w (server_uuid, group_uuid) order by w.server_uuid
  on conflict do nothing;

  return query
    select w.at::int, o.conflicting
    from unnest(server_uuids, group_uuids, policies, most_per_host, to_hosts) with ordinality
      as w (server_uuid, group_uuid, policy, most, host, at),
    lateral (
      select array_agg(h.host order by h.host collate "C") filter (
          where h.host is not null and (w.policy = 'affinity' or h.servers >= w.most)
        ) as conflicting,
        bool_or(case w.policy when 'affinity' then h.host <> w.host else h.host = w.host and h.servers >= w.most end) as refused
      from (
        select s.host, count(*) as servers from group_members m join servers s on s.uuid = m.server_uuid
        where m.group_uuid = w.group_uuid and m.server_uuid <> w.server_uuid
        group by s.host
      ) h
    ) o
    where o.refused;
end
$$;
