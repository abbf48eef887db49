-- requires: is_open_request
-- Puts new requests into `open_requests`. Existing rows stay, because restoring only the data copies `open_requests` before `requests`.
-- (`on conflict` is not used, because it costs a log record for each accepted request.) A restore runs without a search path, so it is set
-- here and in the functions of the other triggers.
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
