-- concurrently: writers go on
-- The servers that users have changed. A list that is sorted by what users change asks about many servers, of which nearly none is among these.
drop index concurrently if exists requests_with_changes;
create index concurrently requests_with_changes on requests (server_uuid) where changes is not null;
