-- Removes rows from `open_requests` that were removed from `requests`.
create or replace function forget_removed_requests() returns trigger language plpgsql
  set search_path from current
as $$
begin
  delete from open_requests o where not exists (select from requests r where r.server_uuid = o.server_uuid);
  return null;
end
$$;
