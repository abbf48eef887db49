-- Requests that users see no more (cancelled or deleted) are marked, so that an index can leave them out: a list of a project's servers then costs
-- what it shows, however many were deleted before. The mark is a column of its own, written once in a request's life: with `state` in the
-- predicate of an index, no change of state would be a heap-only update. What services of the version before delete has no mark, and is
-- left out by its state.
alter table requests add column gone boolean not null default false;

-- As before, but it leaves alone what is there already: a restore of the data alone copies `open_requests` before `requests`. (Not by `on
-- conflict`, which costs a record of the log for each accepted request.)
create or replace function open_accepted_requests() returns trigger language plpgsql as $$
begin
  insert into open_requests (server_uuid, updated_at, state, cell)
  select n.server_uuid, n.updated_at, n.state, n.cell from new_rows n
  where is_open_request(n.state, n.arrived)
    and not exists (select from open_requests o where o.server_uuid = n.server_uuid);
  return null;
end
$$;

-- A restore runs without a search path.
alter function open_accepted_requests() set search_path from current;
alter function follow_requests() set search_path from current;
alter function forget_removed_requests() set search_path from current;
