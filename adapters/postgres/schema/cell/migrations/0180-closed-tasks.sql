-- Operations that can no longer begin: an api was about to begin them, and what they were for has been given to others since.
create table closed_tasks (
  id uuid primary key,
  server_uuid uuid not null,
  closed_at timestamptz not null default now()
);
create index on closed_tasks (server_uuid);
