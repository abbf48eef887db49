-- What operators say of a cell's hosts, beside what the agents report: it is kept here, so that a report of a tree is written
-- under it without asking anybody.

-- Not up whatever its agent says, until an operator takes the word back.
alter table hosts add column forced_down boolean not null default false;
create index on hosts (root_provider) where disabled;

-- Allocation ratios that stand for all inventories of a class in the tree of this root.
create table ratio_overrides (
  root uuid not null,
  class text not null,
  ratio double precision not null check (ratio > 0),
  primary key (root, class)
);

-- What the agent reported where an override stands over it: comes back when the override goes. No foreign key: a tree that is
-- reported without a provider must not fail on it.
create table reported_ratios (
  provider uuid not null,
  class text not null,
  ratio double precision not null,
  primary key (provider, class)
);

-- The batch as it is to be written: operators' ratios in place of the reported ones, and the trait COMPUTE_STATUS_DISABLED on
-- the roots of disabled hosts. Cost: two look-ups a batch where operators said nothing.
create function ledger_under_operators_word(batch ledger_tree_batch) returns ledger_tree_batch
  language plpgsql stable
  set plan_cache_mode = force_custom_plan
as $$
declare
  roots constant uuid[] := array(
    select batch.provider_uuid[t.root] from unnest(batch.tree_root) with ordinality as t (root, at) order by t.at
  );
  disabled_roots int[];
  trait_at int;
begin
  if exists (select from ratio_overrides o where o.root = any (roots)) then
    batch.inventory_allocation_ratio := array(
      select coalesce(o.ratio, b.ratio)
      from unnest(batch.inventory_provider, batch.inventory_class, batch.inventory_allocation_ratio)
        with ordinality as b (provider, class, ratio, at)
      left join ratio_overrides o
        on o.root = roots[batch.provider_tree[b.provider]] and o.class = batch.classes[b.class]
      order by b.at
    );
  end if;
  disabled_roots := array(
    select t.root from unnest(batch.tree_root, roots) as t (root, uuid)
    where exists (select from hosts h where h.root_provider = t.uuid and h.disabled)
  );
  if cardinality(disabled_roots) > 0 then
    trait_at := array_position(batch.traits, 'COMPUTE_STATUS_DISABLED');
    if trait_at is null then
      batch.traits := batch.traits || 'COMPUTE_STATUS_DISABLED'::text;
      trait_at := cardinality(batch.traits);
    end if;
    disabled_roots := array(
      select d.root from unnest(disabled_roots) as d (root)
      where not exists (
        select from unnest(batch.trait_provider, batch.trait_trait) as q (provider, trait)
        where q.provider = d.root and q.trait = trait_at
      )
    );
    batch.trait_provider := batch.trait_provider || disabled_roots;
    batch.trait_trait := batch.trait_trait || array_fill(trait_at, array[cardinality(disabled_roots)]);
  end if;
  return batch;
end
$$;

alter function ledger_put_trees(ledger_tree_batch) rename to ledger_put_trees_as_given;

-- As ledger_put_trees_as_given (migration 0007), under the operators' word. Locks: that of reports of trees first, which whoever
-- changes the operators' word takes, too.
create function ledger_put_trees(batch ledger_tree_batch)
  returns table (tree int, kind text, generations int[], detail jsonb)
  language plpgsql
  set plan_cache_mode = force_custom_plan
as $$
begin
  perform pg_advisory_xact_lock(7236418052);
  return query
    select w.tree, w.kind, w.generations, w.detail
    from ledger_put_trees_as_given(ledger_under_operators_word(batch)) as w;
  insert into reported_ratios as r (provider, class, ratio)
  select batch.provider_uuid[b.provider], o.class, b.ratio
  from unnest(batch.inventory_provider, batch.inventory_class, batch.inventory_allocation_ratio)
    as b (provider, class, ratio)
  join ratio_overrides o
    on o.root = batch.provider_uuid[batch.tree_root[batch.provider_tree[b.provider]]]
    and o.class = batch.classes[b.class]
  on conflict (provider, class) do update set ratio = excluded.ratio where r.ratio <> excluded.ratio;
end
$$;

-- Disables or enables a host for new servers: its row and its root's trait COMPUTE_STATUS_DISABLED together. False: no such host.
create function cell_set_host_disabled(host text, wanted boolean, reason text) returns boolean
  language plpgsql
as $$
declare
  root uuid;
  found_id int;
  disabled_trait int;
begin
  perform pg_advisory_xact_lock(7236418052);
  update hosts h set disabled = wanted, disabled_reason = reason, updated_at = now()
  where h.name = host returning h.root_provider into root;
  if not found then
    return false;
  end if;
  select p.id into found_id from resource_providers p where p.uuid = root for no key update;
  if not found then
    return true;
  end if;
  insert into traits (name) values ('COMPUTE_STATUS_DISABLED') on conflict do nothing;
  select t.id into disabled_trait from traits t where t.name = 'COMPUTE_STATUS_DISABLED';
  if wanted then
    insert into provider_traits (provider_id, trait_id) values (found_id, disabled_trait) on conflict do nothing;
  else
    delete from provider_traits q where q.provider_id = found_id and q.trait_id = disabled_trait;
  end if;
  if found then
    update resource_providers p set generation = p.generation + 1, updated_at = now() where p.id = found_id;
  end if;
  return true;
end
$$;

-- Replaces the overrides of each of these roots by those of the entries (`entry_root` counts the roots from 1) and writes the
-- inventories of their trees accordingly: what is no longer overridden goes back to what the agent reported.
-- Locks: reports of trees, then the trees' providers (by id), then their inventories.
create function cell_set_ratios(roots uuid[], entry_root int[], entry_class text[], entry_ratio double precision[])
  returns void
  language plpgsql
  set plan_cache_mode = force_custom_plan
as $$
declare
  members int[];
  changed int[];
begin
  perform pg_advisory_xact_lock(7236418052);
  members := array(
    select p.id from resource_providers r join resource_providers p on p.root_id = r.id
    where r.uuid = any (roots) order by p.id for no key update of p
  );
  perform 1 from inventories v where v.provider_id = any (members) order by v.provider_id, v.class_id for update;

  -- What is overridden for the first time: what it is now is what the agent said.
  insert into reported_ratios (provider, class, ratio)
  select p.uuid, c.name, v.allocation_ratio
  from inventories v
  join resource_providers p on p.id = v.provider_id
  join resource_providers r on r.id = p.root_id
  join resource_classes c on c.id = v.class_id
  join unnest(entry_root, entry_class) as e (root, class) on roots[e.root] = r.uuid and e.class = c.name
  where v.provider_id = any (members)
    and not exists (select from ratio_overrides o where o.root = r.uuid and o.class = c.name)
  on conflict (provider, class) do update set ratio = excluded.ratio;

  with wanted as (
    select v.provider_id, v.class_id,
      coalesce(e.ratio, case when o.ratio is not null then s.ratio end, v.allocation_ratio) as ratio
    from inventories v
    join resource_providers p on p.id = v.provider_id
    join resource_providers r on r.id = p.root_id
    join resource_classes c on c.id = v.class_id
    left join unnest(entry_root, entry_class, entry_ratio) as e (root, class, ratio)
      on roots[e.root] = r.uuid and e.class = c.name
    left join ratio_overrides o on o.root = r.uuid and o.class = c.name
    left join reported_ratios s on s.provider = p.uuid and s.class = c.name
    where v.provider_id = any (members)
  ),
  written as (
    update inventories v set allocation_ratio = w.ratio, updated_at = now()
    from wanted w
    where v.provider_id = w.provider_id and v.class_id = w.class_id and v.allocation_ratio <> w.ratio
    returning v.provider_id
  )
  select coalesce(array_agg(distinct written.provider_id), '{}') into changed from written;
  update resource_providers p set generation = p.generation + 1, updated_at = now() where p.id = any (changed);

  delete from ratio_overrides o where o.root = any (roots);
  insert into ratio_overrides (root, class, ratio)
  select roots[e.root], e.class, e.ratio from unnest(entry_root, entry_class, entry_ratio) as e (root, class, ratio);
  delete from reported_ratios s
  using resource_providers p, resource_providers r
  where s.provider = p.uuid and r.id = p.root_id and p.id = any (members)
    and not exists (select from ratio_overrides o where o.root = r.uuid and o.class = s.class);
end
$$;

-- Puts aggregates on roots and takes others away; a root that is not there (yet) is passed over. Raises the generation of
-- those that changed: who is about to write the same provider over the Placement API has to look again.
create function cell_mirror_aggregates(add_root uuid[], add_aggregate uuid[], drop_root uuid[], drop_aggregate uuid[])
  returns void
  language plpgsql
as $$
declare
  changed int[];
begin
  perform 1 from resource_providers p where p.uuid = any (add_root || drop_root) order by p.id for no key update;
  with added as (
    insert into provider_aggregates (provider_id, aggregate)
    select p.id, w.aggregate from unnest(add_root, add_aggregate) as w (root, aggregate)
    join resource_providers p on p.uuid = w.root
    on conflict do nothing
    returning provider_id
  ),
  dropped as (
    delete from provider_aggregates a
    using unnest(drop_root, drop_aggregate) as w (root, aggregate) join resource_providers p on p.uuid = w.root
    where a.provider_id = p.id and a.aggregate = w.aggregate
    returning a.provider_id
  )
  select array_agg(w.provider_id) into changed
  from (select added.provider_id from added union select dropped.provider_id from dropped) w;
  update resource_providers p set generation = p.generation + 1, updated_at = now() where p.id = any (changed);
end
$$;
