-- concurrently: writers go on
-- requires: spec_tokens
-- Lists by what few servers have: a given host name, a description, fixed addresses … Other servers, and deleted ones, have no entries.
drop index concurrently if exists servers_tokens;
create index concurrently servers_tokens on servers using gin (spec_tokens(spec)) with (gin_pending_list_limit = 256)
  where deleted_at is null and spec_tokens(spec) is not null;
