-- requires: is_open_request
-- Keeps `open_requests` consistent after an update of `requests`, whichever version of the services made the update.
create or replace function follow_requests() returns trigger language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set search_path from current
as $$
declare
  rows_written int;
  rows_open int;
  rows_followed int;
begin
  select count(*), count(*) filter (where is_open_request(n.state, n.arrived)) into rows_written, rows_open from new_rows n;
  if rows_open < rows_written then
    delete from open_requests o using new_rows n
    where o.server_uuid = n.server_uuid and not is_open_request(n.state, n.arrived);
  end if;
  if rows_open > 0 then
    update open_requests o set updated_at = n.updated_at, state = n.state, cell = n.cell
    from new_rows n where o.server_uuid = n.server_uuid and is_open_request(n.state, n.arrived);
    get diagnostics rows_followed = row_count;
    -- The request had arrived, and now its server is deleted, or it must be placed again.
    if rows_followed < rows_open then
      insert into open_requests (server_uuid, updated_at, state, cell)
      select n.server_uuid, n.updated_at, n.state, n.cell from new_rows n
      where is_open_request(n.state, n.arrived)
        and not exists (select from open_requests o where o.server_uuid = n.server_uuid);
    end if;
  end if;
  return null;
end
$$;
