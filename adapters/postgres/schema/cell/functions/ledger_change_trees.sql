-- requires: ledger_capacity
-- Changes inventories and traits of providers that exist, at the cost of what changes and not of their trees. The caller has read the trees before,
-- without a lock. If anything that it has relied on is different now, nothing is written and the result is false:
--   roots, tree_*     of each tree: what operators have set for it (whether its host is disabled, and the overrides of ratios) and the version of its
--                     latest report, which `reports` replaces
--   providers         the providers that change, with the generations at which they were read
--   set_*, removed_*  inventories that get these values, and those that go. None may have more in use than it then offers
--   gained_*, lost_*  traits
-- Names of classes and traits that the cell does not know make the result false, too. Indexes (set_provider, ...) count from 1.
--
-- Locks: reports of trees, the providers that change (by id), their inventories. Each look-up goes by an index, whatever the statistics say.
create or replace function ledger_change_trees(
  roots uuid[], tree_disabled boolean[], tree_ratios jsonb[], tree_version text[], reports jsonb[],
  providers uuid[], generations int[],
  set_provider int[], set_class text[], set_total int[], set_reserved int[], set_min_unit int[], set_max_unit int[], set_step_size int[],
  set_ratio double precision[],
  removed_provider int[], removed_class text[],
  gained_provider int[], gained_trait text[], lost_provider int[], lost_trait text[]
) returns boolean
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  ids int[];
  set_class_ids int[];
  removed_class_ids int[];
  gained_ids int[];
  lost_ids int[];
begin
  perform pg_advisory_xact_lock(7236418052);
  if exists (
    select from unnest(roots, tree_disabled, tree_ratios, tree_version) as t (root, disabled, ratios, version)
    where t.disabled <> exists (select from hosts h where h.root_provider = t.root and h.disabled)
      or t.ratios <> coalesce(
        (select jsonb_object_agg(o.class, o.ratio) from ratio_overrides o where o.root = t.root), '{}'::jsonb
      )
      or not exists (select from reported_trees w where w.root = t.root and w.xmin::text = t.version)
  ) then
    return false;
  end if;

  perform 1 from resource_providers p where p.uuid = any (providers) order by p.id for update;
  ids := array(
    select p.id from unnest(providers, generations) with ordinality as l (uuid, generation, at)
    join resource_providers p on p.uuid = l.uuid and p.generation = l.generation
    order by l.at
  );
  set_class_ids := array(
    select c.id from unnest(set_class) with ordinality as l (name, at) join resource_classes c on c.name = l.name order by l.at
  );
  removed_class_ids := array(
    select c.id from unnest(removed_class) with ordinality as l (name, at) join resource_classes c on c.name = l.name order by l.at
  );
  gained_ids := array(
    select t.id from unnest(gained_trait) with ordinality as l (name, at) join traits t on t.name = l.name order by l.at
  );
  lost_ids := array(
    select t.id from unnest(lost_trait) with ordinality as l (name, at) join traits t on t.name = l.name order by l.at
  );
  if cardinality(ids) <> cardinality(providers) or cardinality(set_class_ids) <> cardinality(set_class)
    or cardinality(removed_class_ids) <> cardinality(removed_class) or cardinality(gained_ids) <> cardinality(gained_trait)
    or cardinality(lost_ids) <> cardinality(lost_trait) then
    return false;
  end if;

  perform 1 from inventories v where v.provider_id = any (ids) order by v.provider_id, v.class_id for update;
  if exists (
    select from unnest(set_provider, set_class_ids, set_total, set_reserved, set_ratio) as l (provider, class_id, total, reserved, ratio)
    join inventories v on v.provider_id = ids[l.provider] and v.class_id = l.class_id
    where v.used > ledger_capacity(l.total, l.reserved, l.ratio)
  ) or exists (
    select from unnest(removed_provider, removed_class_ids) as l (provider, class_id)
    join inventories v on v.provider_id = ids[l.provider] and v.class_id = l.class_id
    where v.used > 0
  ) then
    return false;
  end if;

  delete from inventories v
  using unnest(removed_provider, removed_class_ids) as l (provider, class_id)
  where v.provider_id = ids[l.provider] and v.class_id = l.class_id;
  insert into inventories as v (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
  select ids[l.provider], l.class_id, l.total, l.reserved, l.min_unit, l.max_unit, l.step_size, l.ratio
  from unnest(set_provider, set_class_ids, set_total, set_reserved, set_min_unit, set_max_unit, set_step_size, set_ratio)
    as l (provider, class_id, total, reserved, min_unit, max_unit, step_size, ratio)
  on conflict (provider_id, class_id) do update
  set total = excluded.total, reserved = excluded.reserved, min_unit = excluded.min_unit, max_unit = excluded.max_unit,
    step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio, updated_at = now();
  delete from provider_traits q
  using unnest(lost_provider, lost_ids) as l (provider, trait_id)
  where q.provider_id = ids[l.provider] and q.trait_id = l.trait_id;
  insert into provider_traits (provider_id, trait_id)
  select ids[l.provider], l.trait_id from unnest(gained_provider, gained_ids) as l (provider, trait_id)
  on conflict do nothing;
  update resource_providers p set generation = p.generation + 1, updated_at = now() where p.id = any (ids);
  update reported_trees w set providers = l.report, kept = '[]', refusal = '', updated_at = now()
  from unnest(roots, reports) as l (root, report)
  where w.root = l.root and (w.providers, w.kept, w.refusal) is distinct from (l.report, '[]'::jsonb, '');
  return true;
end
$$;
