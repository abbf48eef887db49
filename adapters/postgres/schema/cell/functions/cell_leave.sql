-- Whether each of these servers exists here. The UUIDs of those that do not are marked as closed under these assignments and all earlier ones.
create or replace function cell_leave(server_uuids uuid[], assignments int[]) returns table (at int, present boolean)
  language plpgsql
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  insert into servers (uuid, status, spec, project_id, user_id, name, created_at, revision)
  select w.uuid, 'CLOSED', '', '', '', '', now(), w.assignment
  from unnest(server_uuids, assignments) as w (uuid, assignment) order by w.uuid
  on conflict (uuid) do update set revision = excluded.revision, updated_at = now()
    where servers.status = 'CLOSED' and servers.revision < excluded.revision;
  return query
    select w.at::int, s.status not in ('CLOSED', 'DELETED')
    from unnest(server_uuids) with ordinality as w (uuid, at) join servers s on s.uuid = w.uuid;
end
$$;
