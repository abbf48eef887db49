-- Identifies the state of this database. The id changes when an operator declares that the database was restored, the timeline with each
-- failover and each recovery.
create or replace function cell_incarnation() returns text
  language sql stable
as $$
  select i.id || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) from incarnation i;
$$;
