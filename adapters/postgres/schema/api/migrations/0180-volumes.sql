-- Volumes, and the server that has each. `task_id` is the operation that attaches or detaches the volume, written before its cell is told of it.
create table volumes (
  id uuid primary key,
  project_id text not null,
  user_id text not null,
  name text not null,
  description text,
  size_gib integer not null check (size_gib > 0),
  metadata jsonb not null,
  availability_zone text not null,
  is_bootable boolean not null,
  created_at_ms bigint not null,
  updated_at_ms bigint,
  revision integer not null default 0,
  phase text check (phase in ('attaching', 'attached', 'detaching')),
  phase_at timestamptz,
  reserved_at timestamptz,
  attached_at_ms bigint,
  server_uuid uuid,
  cell text,
  attachment_id uuid,
  mapping_uuid uuid,
  device text,
  tag text,
  delete_on_termination boolean,
  task_id uuid,
  check (num_nonnulls(phase, phase_at, reserved_at, server_uuid, cell, attachment_id, mapping_uuid, device, delete_on_termination) in (0, 9))
);
create index volumes_listed on volumes (created_at_ms desc, id);
create index volumes_of_projects on volumes (project_id, created_at_ms desc, id);
create unique index volumes_of_servers on volumes (server_uuid, device) where server_uuid is not null;
create index volumes_unsettled on volumes (id) where phase in ('attaching', 'detaching');
