-- Whether the schedulers' sweeps have to look at a request: it waits for a scheduler or for its end in a cell, or nobody has seen it in its
-- cell yet.
create or replace function is_open_request(state text, arrived boolean) returns boolean language sql immutable
return state in ('accepted', 'cancelled') or state = 'dispatched' and not arrived;
