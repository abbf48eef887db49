-- What scheduling asks of images and ports; their bits and wires are other services'.

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
  -- Rises with every write: a change is made of what was read, or made again.
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
  created_at_ms bigint not null
);
create index on ports (project_id, created_at_ms, id);
