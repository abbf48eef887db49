-- Which state of this database this is. The id changes when an operator says that the database was restored, the timeline with each failover
-- and each recovery.
create or replace function cell_incarnation() returns text
  language sql stable
as $$
  select i.id || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) from incarnation i;
$$;
