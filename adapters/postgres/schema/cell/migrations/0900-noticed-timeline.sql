-- Postgres' timeline on which this database was when an operation was last closed, and since when that is another one: a restored database and a standby that has taken over may lack
-- operations that have begun before, also if no operator has said so (berth cell restored). timeline_since is null as long as nobody has seen another timeline.
alter table incarnation
  add column timeline text not null default left(pg_walfile_name(pg_current_wal_lsn()), 8),
  add column timeline_since timestamptz;
