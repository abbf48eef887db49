-- The API tier's own database: its tables as they were when the migrations up to here were put together into one. No query and no
-- transaction reaches from here into a cell's database.
--
-- requires: open_accepted_requests, follow_requests, forget_removed_requests

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
--   accepted     It has no cell yet.
--   dispatched   `cell` is the only cell where it may be claimed or be; from then on that cell's own row is the truth.
--   failed       It was placed nowhere: `fault` says why (what Nova keeps in cell0).
--   cancelled    It was deleted before or while it went to a cell; `cell` (if any) may still have to be told.
--   deleted      It is gone.
--
-- No index has a column that changes during the life of a request, and every page keeps room: so a request goes through its states by
-- heap-only updates. What the schedulers' sweeps look for is in `open_requests`.
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
  updated_at timestamptz not null default now(),
  -- A request may be assigned to a cell and then be lost, together with its message. A sweep compares the dispatched requests with the
  -- servers of the cell and notes here which of them it has seen there, so that it never looks at those again (law 5).
  arrived boolean not null default false,
  -- Users see it no longer (cancelled or deleted). It is written once in the life of a request; with `state` in the predicates below, no
  -- change of state would be a heap-only update. Older versions of the services do not write it: such rows are left out by their state.
  gone boolean not null default false
) with (fillfactor = 70);
-- Lists leave out what is gone: they cost what they show, however many servers were deleted before.
create index requests_living on requests (created_at desc, server_uuid) where not gone;
create index requests_living_of_project on requests (project_id, created_at desc, server_uuid) where not gone;

-- What the schedulers' sweeps look for, in a small table of its own: requests that wait for a scheduler or for their end in a cell, and
-- those that nobody has seen in their cell yet. The triggers below keep it for every writer. A row here is written by the transaction that
-- holds the lock of its row in `requests`: one order, and no races.
--
-- A request that cannot be placed yet is remembered here and not in the work queue: `retry_at` is when a sweep takes it again, `put_offs` is how
-- often it was put off. So the queue holds at most one message of each request.
create table open_requests (
  server_uuid uuid primary key,
  updated_at timestamptz not null,
  state text not null,
  cell text,
  -- By the clock of this database, unlike `requests.created_at`, which an api writes: ages are calculated from it.
  accepted_at timestamptz not null default now(),
  retry_at timestamptz,
  put_offs int not null default 0,
  -- How many requests of one project wait to be placed is counted when more are accepted. The project never changes, so the index costs an
  -- insert for each request and nothing when the request changes its state.
  project_id text
) with (fillfactor = 90);
create index on open_requests (project_id);

create trigger open_accepted after insert on requests referencing new table as new_rows
  for each statement execute function open_accepted_requests();
create trigger follow after update on requests referencing new table as new_rows
  for each statement execute function follow_requests();
create trigger forget_removed after delete or truncate on requests
  for each statement execute function forget_removed_requests();

-- Host aggregates. A host is named, not referenced: hosts belong to the cells.
create table aggregates (
  id int generated always as identity primary key,
  -- The placement aggregate that mirrors it in the cells has the same uuid.
  uuid uuid not null unique,
  name text not null unique,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz
);

create table aggregate_hosts (
  aggregate_id int not null references aggregates (id),
  host text not null,
  primary key (aggregate_id, host)
);
create index on aggregate_hosts (host);

-- One row. Every writer of aggregates, of their hosts and of ratios updates it first. So they write one after the other (a host must not get
-- into two zones at once), and a process that keeps a copy sees by one look that its copy is old.
create table aggregate_changes (
  single boolean primary key default true check (single),
  version bigint not null
);
insert into aggregate_changes (version) values (0);

-- Deleted aggregates, by the uuid that a cell which could not be reached may still mirror.
create table former_aggregates (
  uuid uuid primary key,
  deleted_at timestamptz not null default now()
);

-- Allocation ratios that operators set, by class: of all hosts of an aggregate, or of one host.
create table aggregate_ratios (
  aggregate_id int not null references aggregates (id) on delete cascade,
  class text not null,
  ratio double precision not null check (ratio > 0),
  primary key (aggregate_id, class)
);
create table host_ratios (
  host text not null,
  class text not null,
  ratio double precision not null check (ratio > 0),
  primary key (host, class)
);

-- What scheduling needs to know of images and ports; their bits and wires belong to other services.
create table images (
  id uuid primary key,
  name text,
  owner text not null,
  visibility text not null,
  disk_format text,
  container_format text,
  min_disk_gib int not null,
  min_ram_mib int not null,
  is_protected boolean not null,
  tags jsonb not null,
  properties jsonb not null,
  created_at_ms bigint not null,
  updated_at_ms bigint not null,
  -- Rises with every write: a change is made of the image as it was read, or it is made again.
  version bigint not null default 0
);
create index on images (created_at_ms desc, id);

create table ports (
  id uuid primary key,
  project_id text not null,
  network_id text not null,
  name text not null,
  -- Request groups: resources by class, required traits.
  groups jsonb not null,
  created_at_ms bigint not null,
  -- The server that has the port, so that no other gets it. What the server holds for it is in the server's cell.
  server_uuid uuid,
  bound_at timestamptz
);
create index on ports (project_id, created_at_ms, id);

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

-- A row is written before the server's request is: a row without a request is no member. `cell` is for affinity: the cell that the server may
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

-- A call for several servers: at least `min_count` of `server_uuids` are placed, or none. The decision is made here, once.
create table reservations (
  id text primary key,
  server_uuids uuid[] not null,
  min_count int not null,
  decision text check (decision in ('placed', 'refused')),
  fault text,
  created_at timestamptz not null default now()
);
-- Schedulers forget old calls for several servers.
create index on reservations (created_at);

-- What operators set while services run: one row for each section, with only the values that differ from the defaults.
create table settings (
  section text primary key,
  version bigint not null,
  "values" jsonb not null,
  updated_at timestamptz not null default now()
);

-- How schedulers decided, for people who ask why: appended in batches, purged by age and number, read by server.
create table decisions (
  id bigint generated always as identity primary key,
  server_uuid uuid not null,
  request_id text not null,
  scheduler text not null,
  at timestamptz not null,
  decision jsonb not null
);
create index decisions_server on decisions (server_uuid, id desc);
create index decisions_at on decisions using brin (at);

-- Requests to move a server that need a host: a row here until a scheduler has begun the operation in the server's cell, or refused it.
create table moves (
  -- The operation has this id in the cell.
  id uuid primary key,
  server_uuid uuid not null,
  kind text not null,
  request bytea not null,
  state text not null default 'accepted' check (state in ('accepted', 'begun', 'refused')),
  fault text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  -- Where the server lives; null: an api of an older version accepted the move.
  cell text,
  -- A move that cannot be placed yet, as in `open_requests`.
  retry_at timestamptz,
  put_offs int not null default 0,
  -- Since when its cell may have been asked to begin it: from then on only that cell knows whether it did.
  asked_at timestamptz
);
-- One operation at a time.
create unique index moves_waiting on moves (server_uuid) where state = 'accepted';
create index on moves (updated_at) where state = 'accepted';
create index on moves (server_uuid, created_at desc);

-- Which process is about to write a name of the Placement API (a provider's uuid or name, a consumer) in which cell. Such names are unique over
-- all cells, and no constraint reaches over databases: a process first has a row here, then looks into the other cells, then writes. A row
-- counts only for a while: longer than the write after it can take. So a row that its process left behind without writing keeps nobody out for
-- long, and old rows are removed. See core/placement/cell-arbiter.ts.
create table cell_claims (
  kind text not null check (kind in ('provider-uuid', 'provider-name', 'consumer')),
  key text not null,
  cell text not null,
  -- Each claim has another token: a process that gives its row back must not take it from another one that has claimed it since.
  token uuid not null default gen_random_uuid(),
  claimed_at timestamptz not null default now(),
  primary key (kind, key)
);
create index on cell_claims (claimed_at);

-- Which hosts each cell had when an api last saw it: what is answered of a cell that does not answer. Written only when a cell's hosts change.
create table host_map (
  cell text not null,
  host text not null,
  primary key (cell, host)
);

-- The migrations that this one stands for, with the checksums of their files: a database that has all of them is taken over as it is.
-- replaces: 0001-api 0970b9bd44934649bc1fa3117c3bfe5cd102149c72c7fdfec1a515791c77d17d
-- replaces: 0002-arrived 34a7e7cc4144044399d8c9199612ea39a4f7ff5667459c0c0ee256a1496ffe8a
-- replaces: 0003-aggregates 0c76039cd3427d4d225b3a7b33d897b826ccc60cdf024693ff2529426b49569b
-- replaces: 0004-images-ports 2c737728d049830cffe24d5f2acd945c79f78c07482c1e843432025b8ee20e88
-- replaces: 0005-server-groups 94065cda98da50097aaf2a83d55ed35d99d4fecb48782ab034e113b8c76b31f8
-- replaces: 0006-settings d3503673a47aa4cf7d2462cb5c4faf85c9cd2b8a419f59c7d59453298e9607ec
-- replaces: 0007-decisions 2a96dcbc5d5f4f9f5f30665d42e3e9d61d7873300b85355593c3b44a58708df8
-- replaces: 0008-moves ecdbe17773c0b3a6d04d08fabb24db2b24e479b2154864885d4eba1e0ec2e71a
-- replaces: 0009-port-bindings c223062272ae4cf2a35991cb780c3934323ad676ad583da05bff2b8caa1c5f74
-- replaces: 0010-reservation-age 09a12d076c2b5e20abaacad703e49462c7c50e2615bdfcf8954731df641dddaf
-- replaces: 0011-open-requests a357ccabc9fa67f2cdeb2c4a59032229a0ebee993924d03e6e061d1fb7feb09f
-- replaces: 0012-put-off 4dc1d8e0fd51fa3c1ce081a53658fc900f160dca468bc9907241708d5148a48b
-- replaces: 0020-living-requests 7c04496a56bc591a8a636a7e15166b10aac2703683a6451a7af8ff4230516605
-- replaces: 0021-lists-by-index 72654137dc1b3e5435da807109154045189f608f9a32c47e321e4e215c62557c
-- replaces: 0022-cell-claims de9ad5d59377268ab809f4ed0c852da4b9216bf42334c02f4ee13a9f0f3d4329
-- replaces: 0040-open-limit 49ce726b7930c5323be48314fdf6886ba4519af343e21023cda128a8eda5f429
-- replaces: 0045-host-map 2be941eb88c67a1eeca9bfd6bc305a6c8382b4889b5270df909bcfb0104cf3d8
