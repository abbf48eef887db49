-- Marks the UUIDs of absent servers as closed for good, so that a late dispatch fails on the primary key. The revision of a closed server
-- is the number of the last assignment under which it must not come to this cell; no assignment has the highest number.
create or replace function cell_shut(server_uuids uuid[]) returns void
  language sql
as $$
  insert into servers (uuid, status, spec, project_id, user_id, name, created_at, revision)
  select w.uuid, 'CLOSED', '', '', '', '', now(), 2147483647 from unnest(server_uuids) as w (uuid) order by w.uuid
  on conflict (uuid) do update set revision = 2147483647, updated_at = now()
    where servers.status = 'CLOSED' and servers.revision < 2147483647;
$$;
