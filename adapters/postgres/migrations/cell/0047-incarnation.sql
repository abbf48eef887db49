-- Which state of this cell's database this is. A restored database, or one that failed over, may have forgotten servers that exist: agents
-- remember the incarnation that they were last compared with, and what they have is not destroyed on the word of another one.
create table incarnation (
  only_row boolean primary key default true check (only_row),
  id uuid not null default gen_random_uuid(),
  changed_at timestamptz not null default now()
);
insert into incarnation default values;

-- The id changes when an operator says that the database was restored, the timeline with each failover and each recovery.
create function cell_incarnation() returns text
  language sql stable
as $$
  select i.id || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) from incarnation i;
$$;

-- Guests that hosts have, that this database would have destroyed, and that are kept until an operator decides.
create table quarantined_guests (
  host text not null,
  attempt_id text not null,
  server_uuid text not null,
  state text not null,
  reason text not null,
  found_at timestamptz not null default now(),
  condemned boolean not null default false,
  -- Its host was disabled for it; an operator may enable the host again.
  host_disabled boolean not null default false,
  primary key (host, attempt_id)
);
