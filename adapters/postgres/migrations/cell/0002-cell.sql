-- What a cell knows of its hosts, servers and tasks.

-- One row an agent process; its heartbeats touch this row alone, not one a host.
create table agents (
  id text primary key,
  seen_at timestamptz not null
);

create table hosts (
  name text primary key,
  root_provider uuid not null,
  agent_id text not null,
  up boolean not null,
  disabled boolean not null default false,
  disabled_reason text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index on hosts (agent_id) where up;
create index on hosts (agent_id) where not up;

create table conductors (
  id uuid primary key,
  name text not null,
  lease_expires_at timestamptz not null
);

-- A server of this cell. `spec` is the ServerSpec of proto/berth/shared.proto. A row with status CLOSED is no server: it
-- says that the server of this uuid shall never come to be in this cell (deleted, or placed elsewhere, before it got here),
-- and makes a dispatch that comes too late fail on the primary key.
create table servers (
  uuid uuid primary key,
  status text not null check (status in ('BUILD', 'ACTIVE', 'ERROR', 'DELETED', 'CLOSED')),
  task_state text,
  spec bytea not null,
  project_id text not null,
  user_id text not null,
  name text not null,
  -- The server's home: the host that holds its allocation, and the attempt that may run there.
  host text,
  attempt_id text,
  fault text,
  fault_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null default now(),
  launched_at timestamptz,
  deleted_at timestamptz
) with (fillfactor = 50);
-- Becoming ACTIVE must stay a heap-only update (so for what follows below, too): a batch of builds lies on a few pages and
-- is written in one transaction, hence half of each page is left free; `status` is in no index, nor in a predicate (what is
-- DELETED has no host), and `updated_at` in a summarizing one alone.
create index on servers (host) where host is not null;
create index on servers using brin (updated_at) with (pages_per_range = 16, autosummarize = on);

-- A durable task, and the outbox row of its message. `payload` is the Task of proto/berth/cell.proto. `epoch` rises each
-- time a conductor takes it: whoever writes with an older epoch writes nothing. No foreign keys from here on: tasks and
-- attempts are written by the functions of 0004 alone, under the lock of their server's row.
create table tasks (
  id uuid primary key,
  server_uuid uuid not null,
  kind text not null check (kind in ('build', 'delete')),
  -- Never compressed: a long one would cost more time than it saves space.
  payload bytea storage external not null,
  epoch int not null default 0,
  owner uuid,
  -- Which selection of the plan is being tried (0 is the chosen host). An attempt's id is `<task id>/<selection>`.
  selection int not null default 0,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  outcome text check (outcome in ('success', 'error', 'deleted', 'cancelled'))
) with (fillfactor = 40);
create index on tasks (server_uuid);
-- Not by owner, so that taking a task is a heap-only update.
create index on tasks (created_at, id) where ended_at is null;

-- What became of each selection of each task: what `os-instance-actions` shows.
create table attempts (
  task_id uuid not null,
  selection int not null,
  server_uuid uuid not null,
  host text not null,
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  -- null while it runs; `success`, `failed`, `skipped` (the alternate no longer fitted; counts as no attempt), `cancelled`
  result text check (result in ('success', 'failed', 'skipped', 'cancelled')),
  reason text,
  primary key (task_id, selection)
) with (fillfactor = 50);
create index on attempts (server_uuid);
