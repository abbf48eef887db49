-- requires: cell_claim_groups
-- called by: services of the versions whose last migration of a cell is older than 0050-groups-with-moves
-- Those versions do not know of moves in a group. They call this function instead of cell_claim_groups.
create or replace function cell_join_groups(
  server_uuids uuid[], group_uuids uuid[], policies text[], most_per_host int[], to_hosts text[]
)
  returns table (at int, conflicting text[])
  language sql
as $$
  select c.at, c.conflicting from cell_claim_groups(server_uuids, group_uuids, policies, most_per_host, to_hosts, '{}') c;
$$;
