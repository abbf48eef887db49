-- Marks the UUIDs of absent servers as closed, so that a late dispatch fails on the primary key.
create or replace function cell_shut(server_uuids uuid[]) returns void
  language sql
as $$
  insert into servers (uuid, status, spec, project_id, user_id, name, created_at)
  select w.uuid, 'CLOSED', '', '', '', '', now() from unnest(server_uuids) as w (uuid) order by w.uuid
  on conflict do nothing;
$$;
