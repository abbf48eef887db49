-- concurrently: writers go on
-- Lists of deleted servers (`deleted=true`). Other indexes of `servers` have `deleted_at` in their conditions, so this one makes no update dearer.
drop index concurrently if exists servers_deleted;
create index concurrently servers_deleted on servers (deleted_at) where deleted_at is not null;
