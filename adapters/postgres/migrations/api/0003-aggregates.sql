-- Host aggregates. A host is named, not referenced: hosts are the cells' own.

create table aggregates (
  id int generated always as identity primary key,
  -- Also of the placement aggregate that mirrors it in the cells.
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

-- One row. Every writer of aggregates, of their hosts and of ratios updates it first: that puts them in a row (a host must
-- not get into two zones at once), and whoever keeps a copy sees by one look that it is old.
create table aggregate_changes (
  single boolean primary key default true check (single),
  version bigint not null
);
insert into aggregate_changes (version) values (0);

-- Aggregates that are no more, by the uuid that a cell which was away may still mirror.
create table former_aggregates (
  uuid uuid primary key,
  deleted_at timestamptz not null default now()
);

-- What operators set: allocation ratios by class, of all hosts of an aggregate or of one host.
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
