-- What the schedulers' sweeps look for, in a small table of its own: requests that wait for a scheduler or for their end in a cell, and
-- those that nobody has seen in their cell yet. No index of `requests` has a column that changes, so that a request goes through its
-- states by heap-only updates, for which every page keeps room.
--
-- The triggers keep it for whoever writes, services of the version before included; these live on, but their sweeps read all of
-- `requests`. A row here is written by who holds the lock of its row in `requests`: one order, and no races.
--
-- The strongest lock comes first: dropping an index takes it in the end, and with a weaker one held by then, this and a service's statement
-- that has locked rows and is about to write them would wait for each other.
lock table requests in access exclusive mode;
alter table requests set (fillfactor = 70);

create table open_requests (
  server_uuid uuid primary key,
  updated_at timestamptz not null,
  state text not null,
  cell text
) with (fillfactor = 90);

create function is_open_request(state text, arrived boolean) returns boolean language sql immutable
return state in ('accepted', 'cancelled') or state = 'dispatched' and not arrived;

create function open_accepted_requests() returns trigger language plpgsql as $$
begin
  insert into open_requests (server_uuid, updated_at, state, cell)
  select n.server_uuid, n.updated_at, n.state, n.cell from new_rows n where is_open_request(n.state, n.arrived);
  return null;
end
$$;

create function follow_requests() returns trigger language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
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
    -- It had arrived, and its server is deleted now, or it has to be placed again.
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

create function forget_removed_requests() returns trigger language plpgsql as $$
begin
  delete from open_requests o where not exists (select from requests r where r.server_uuid = o.server_uuid);
  return null;
end
$$;

create trigger open_accepted after insert on requests referencing new table as new_rows
  for each statement execute function open_accepted_requests();
create trigger follow after update on requests referencing new table as new_rows
  for each statement execute function follow_requests();
create trigger forget_removed after delete or truncate on requests
  for each statement execute function forget_removed_requests();

insert into open_requests (server_uuid, updated_at, state, cell)
select server_uuid, updated_at, state, cell from requests where state in ('accepted', 'cancelled');
insert into open_requests (server_uuid, updated_at, state, cell)
select server_uuid, updated_at, state, cell from requests where state = 'dispatched' and not arrived;

drop index requests_updated_at_server_uuid_idx;
drop index requests_on_their_way;
