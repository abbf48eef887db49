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

-- fillfactor leaves room for heap-only updates: over the Placement API each write of allocations raises generations.
create table resource_providers (
  id int generated always as identity primary key,
  uuid uuid not null unique,
  name text not null unique,
  parent_id int references resource_providers (id),
  root_id int not null references resource_providers (id) deferrable initially deferred,
  generation int not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
) with (fillfactor = 70);
create index on resource_providers (root_id);
create index on resource_providers (parent_id);

-- fillfactor leaves room for heap-only updates: `used` changes with every claim and no index covers it. `updated_at` tells
-- when the inventory itself was last written; claims leave it alone.
create table inventories (
  provider_id int not null references resource_providers (id),
  class_id int not null references resource_classes (id),
  total int not null,
  reserved int not null,
  min_unit int not null check (min_unit > 0),
  max_unit int not null,
  step_size int not null check (step_size > 0),
  allocation_ratio double precision not null,
  -- Sum of the allocations of this provider and class (law 1); ledger_apply alone writes it.
  used bigint not null default 0 check (used >= 0),
  updated_at timestamptz not null default now(),
  primary key (provider_id, class_id)
) with (fillfactor = 70);

-- What a foreign key from allocations would do, at no cost to claims: nobody removes an inventory that is in use.
create function refuse_inventory_in_use() returns trigger language plpgsql as $$
begin
  raise exception 'inventory % of provider % is in use', old.class_id, old.provider_id
    using errcode = 'foreign_key_violation', constraint = 'allocations_inventory_fkey';
end
$$;
create trigger inventory_in_use before delete on inventories
  for each row when (old.used > 0) execute function refuse_inventory_in_use();

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

-- A consumer exists as long as it holds something.
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

-- No foreign keys: their checks cost more than the claim itself (nine look-ups and row locks for one of three classes).
-- ledger_apply is the only writer; it writes under the locks of the consumer and of the inventories, and an inventory that
-- is in use is never removed (trigger inventory_in_use). `berth audit` looks for rows that break this.
create table allocations (
  consumer_uuid uuid not null,
  provider_id int not null,
  class_id int not null,
  amount bigint not null check (amount > 0),
  updated_at timestamptz not null default now(),
  primary key (consumer_uuid, provider_id, class_id)
);
create index on allocations (provider_id);

-- (total − reserved) × allocation_ratio, rounded down, as upstream Placement computes it; kept within 2^53 − 1 both ways,
-- since upstream allows ratios that overflow any integer. The same formula as capacityOf in core/ledger/model.ts.
create function ledger_capacity(total int, reserved int, allocation_ratio double precision) returns bigint
  language sql immutable parallel safe
  return greatest(least(floor((total - reserved) * allocation_ratio), 9007199254740991), -9007199254740991)::bigint;
