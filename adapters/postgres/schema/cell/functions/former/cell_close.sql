-- requires: cell_shut
-- called by: services of the versions whose last migration of the API database is older than 0070-assignments
-- Whether each of these servers exists here. The UUIDs of those that do not are marked as closed for good (cell_shut).
create or replace function cell_close(server_uuids uuid[]) returns table (at int, present boolean)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  perform cell_shut(server_uuids);
  return query
    select w.at::int, s.status not in ('CLOSED', 'DELETED')
    from unnest(server_uuids) with ordinality as w (uuid, at) join servers s on s.uuid = w.uuid;
end
$$;
