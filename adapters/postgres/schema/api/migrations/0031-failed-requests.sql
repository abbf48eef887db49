-- Requests that found no host are found without a look at the others. A fault is written once in the life of a request, and most have none.
create index requests_failed on requests (created_at desc, server_uuid) where fault is not null and not gone;
