-- The API tier's own database. No query and no transaction reaches from here into a cell's.

create table cells (
  name text primary key,
  database_url text not null,
  nats_url text,
  disabled boolean not null default false,
  created_at timestamptz not null default now()
);

create table flavors (
  id text primary key,
  name text not null unique,
  vcpus int not null,
  memory_mib int not null,
  disk_gib int not null,
  ephemeral_gib int not null default 0,
  swap_mib int not null default 0,
  rxtx_factor double precision not null default 1,
  is_public boolean not null default true,
  description text,
  extra_specs jsonb not null default '{}',
  created_at timestamptz not null default now()
);

-- An accepted request to create a server: from here on it ends in ACTIVE or in ERROR with a reason (law 5). `spec` is the
-- ServerSpec of proto/berth/shared.proto.
--   accepted     no cell yet
--   dispatched   `cell` is the only cell where it may be claimed or be; the cell's own row is the truth from then on
--   failed       nowhere placed: `fault` says why (what Nova keeps in cell0)
--   cancelled    deleted before or while it went to a cell; `cell` (if any) may still have to be told
--   deleted      gone
create table requests (
  server_uuid uuid primary key,
  state text not null check (state in ('accepted', 'dispatched', 'failed', 'cancelled', 'deleted')),
  -- No foreign key: its check would lock the cell's row for every boot.
  cell text,
  spec bytea not null,
  project_id text not null,
  user_id text not null,
  name text not null,
  fault text,
  -- The first call that asked to delete it, and when.
  cancel_request_id text,
  cancelled_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null default now()
) with (fillfactor = 80);
create index on requests (project_id, created_at desc, server_uuid);
create index on requests (created_at desc, server_uuid);
create index on requests (updated_at, server_uuid) where state in ('accepted', 'cancelled');
