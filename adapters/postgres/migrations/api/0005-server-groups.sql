-- Server groups, and calls for several servers.

create table server_groups (
  uuid uuid primary key,
  name text not null,
  project_id text not null,
  user_id text not null,
  policy text not null check (policy in ('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity')),
  max_server_per_host int,
  created_at timestamptz not null default clock_timestamp()
);
create index on server_groups (project_id, created_at, uuid);

-- Written before the server's request is: a row without a request is no member. `cell` is of affinity: the one that the server may
-- be claimed in, set under the lock of the group's row, before the request is assigned there.
create table server_group_members (
  server_uuid uuid primary key,
  group_uuid uuid not null references server_groups (uuid) on delete cascade,
  cell text,
  added_at timestamptz not null default now()
);
create index on server_group_members (group_uuid);

-- Members whose requests live.
create view server_group_servers as
  select m.group_uuid, m.server_uuid, m.cell, r.state
  from server_group_members m join requests r on r.server_uuid = m.server_uuid
  where r.state not in ('cancelled', 'deleted');

-- A call for several servers: of `server_uuids` at least `min_count` are placed, or none. Who places them decides it here, once.
create table reservations (
  id text primary key,
  server_uuids uuid[] not null,
  min_count int not null,
  decision text check (decision in ('placed', 'refused')),
  fault text,
  created_at timestamptz not null default now()
);
