-- Requests to move a server that need a host: a row here until a scheduler has begun the operation in the server's cell, or refused it.
create table moves (
  -- The operation's id in the cell.
  id uuid primary key,
  server_uuid uuid not null,
  kind text not null,
  request bytea not null,
  state text not null default 'accepted' check (state in ('accepted', 'begun', 'refused')),
  fault text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);
-- One operation at a time.
create unique index moves_waiting on moves (server_uuid) where state = 'accepted';
create index on moves (updated_at) where state = 'accepted';
create index on moves (server_uuid, created_at desc);
