-- requires: is_open_request
-- Puts new requests into `open_requests`. It leaves alone what is there already: a restore of the data alone copies `open_requests` before
-- `requests`. (Not by `on conflict`, which costs a record of the log for each accepted request.) A restore runs without a search path,
-- hence the setting of it here and in the functions of the other triggers.
create or replace function open_accepted_requests() returns trigger language plpgsql
  set search_path from current
as $$
begin
  insert into open_requests (server_uuid, updated_at, state, cell, project_id)
  select n.server_uuid, n.updated_at, n.state, n.cell, n.project_id from new_rows n
  where is_open_request(n.state, n.arrived)
    and not exists (select from open_requests o where o.server_uuid = n.server_uuid);
  return null;
end
$$;
