-- concurrently: writers go on
-- The ports of a project that do not end with a server, which are counted for each new one: a project may have very many others.
drop index concurrently if exists ports_owned;
create index concurrently ports_owned on ports (project_id) where not ends_with_server;
