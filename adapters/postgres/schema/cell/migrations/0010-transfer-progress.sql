-- How far the hand-overs of moves have come, in bytes. Only people read it, so it is not logged: after a crash of the database, the agents'
-- next reports fill it again.
create unlogged table transfer_progress (
  migration_uuid uuid primary key references migrations (uuid) on delete cascade,
  memory_total bigint not null,
  memory_processed bigint not null,
  memory_remaining bigint not null,
  disk_total bigint not null,
  disk_processed bigint not null,
  disk_remaining bigint not null
) with (fillfactor = 50);
