-- The ledger of one cell. Lock order, everywhere: servers (by uuid) → tasks (by id) → consumers (by uuid) →
-- providers (by id) → inventories (by provider_id, class_id). Batches that lock in another order deadlock.

create table resource_classes (
  id int generated always as identity primary key,
  name text not null unique
);

create table traits (
  id int generated always as identity primary key,
  name text not null unique
);

create table resource_providers (
  id int generated always as identity primary key,
  uuid uuid not null unique,
  name text not null unique,
  parent_id int references resource_providers (id),
  root_id int not null references resource_providers (id) deferrable initially deferred,
  generation int not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index on resource_providers (root_id);
create index on resource_providers (parent_id);

-- fillfactor leaves room for heap-only updates: `used` changes with every claim and no index covers it.
create table inventories (
  provider_id int not null references resource_providers (id),
  class_id int not null references resource_classes (id),
  total int not null,
  reserved int not null,
  min_unit int not null,
  max_unit int not null,
  step_size int not null,
  allocation_ratio double precision not null,
  used bigint not null default 0,
  updated_at timestamptz not null default now(),
  primary key (provider_id, class_id)
) with (fillfactor = 70);

create table provider_traits (
  provider_id int not null references resource_providers (id),
  trait_id int not null references traits (id),
  primary key (provider_id, trait_id)
);
create index on provider_traits (trait_id);

create table provider_aggregates (
  provider_id int not null references resource_providers (id),
  aggregate uuid not null,
  primary key (provider_id, aggregate)
);
create index on provider_aggregates (aggregate);

create table consumers (
  uuid uuid primary key,
  generation int not null,
  project_id text not null,
  user_id text not null,
  type text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index on consumers (project_id, user_id);

create table allocations (
  consumer_uuid uuid not null references consumers (uuid),
  provider_id int not null references resource_providers (id),
  class_id int not null references resource_classes (id),
  amount bigint not null check (amount > 0),
  updated_at timestamptz not null default now(),
  primary key (consumer_uuid, provider_id, class_id)
);
create index on allocations (provider_id);

-- (total − reserved) × allocation_ratio, rounded down, as upstream Placement computes it. The same formula as
-- capacityOf in core/ledger/model.ts.
create function ledger_capacity(total int, reserved int, allocation_ratio double precision) returns bigint
  language sql immutable parallel safe
  return floor((total - reserved) * allocation_ratio)::bigint;
