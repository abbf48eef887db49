-- Whether the schedulers' sweeps must examine a request: it waits for a scheduler or for its end in a cell, or its server was not yet seen
-- in its cell.
create or replace function is_open_request(state text, arrived boolean) returns boolean language sql immutable
return state in ('accepted', 'cancelled') or state = 'dispatched' and not arrived;
