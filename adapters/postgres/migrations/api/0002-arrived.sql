-- Law 5 for requests that were assigned to a cell and then lost, their message with them: a sweep compares the dispatched ones
-- with the cell's servers, and notes here which it has seen there, so that it never looks at those again.
alter table requests add column arrived boolean not null default false;
create index requests_on_their_way on requests (cell, updated_at, server_uuid) where state = 'dispatched' and not arrived;
