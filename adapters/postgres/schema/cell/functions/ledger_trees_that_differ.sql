-- The trees of the batch that differ from the ledger. Only reads. A tree that is not returned can be answered "unchanged".
create or replace function ledger_trees_that_differ(batch ledger_tree_batch) returns int[]
  language plpgsql stable
  set plan_cache_mode = force_custom_plan
as $$
declare
  l_tree constant int[] := batch.provider_tree;
  l_uuid constant uuid[] := batch.provider_uuid;
  l_name constant text[] := batch.provider_name;
  l_parent constant int[] := batch.provider_parent;
  l_expected constant int[] := batch.provider_expected;
  l_owns constant boolean[] := batch.provider_owns_aggregates;
  t_root constant int[] := batch.tree_root;
  v_provider constant int[] := batch.inventory_provider;
  v_class constant int[] := batch.inventory_class;
  q_provider constant int[] := batch.trait_provider;
  q_trait constant int[] := batch.trait_trait;
  a_provider constant int[] := batch.aggregate_provider;
  a_uuid constant uuid[] := batch.aggregate_uuid;
  ids int[];
  class_ids int[];
  trait_ids int[];
begin
  ids := array(
    select p.id from unnest(l_uuid) with ordinality as l (uuid, at)
    left join resource_providers p on p.uuid = l.uuid order by l.at
  );
  class_ids := array(
    select r.id from unnest(batch.classes) with ordinality as w (name, at)
    left join resource_classes r on r.name = w.name order by w.at
  );
  trait_ids := array(
    select r.id from unnest(batch.traits) with ordinality as w (name, at)
    left join traits r on r.name = w.name order by w.at
  );
  return array(
    select l.tree
    from unnest(l_tree, ids, l_name, l_parent, l_expected) as l (tree, id, name, parent, expected)
    left join resource_providers p on p.id = l.id
    where p.id is null or p.name <> l.name or p.parent_id is distinct from ids[l.parent]
      or p.root_id <> ids[t_root[l.tree]] or (l.expected <> -1 and l.expected <> p.generation)
    union
    select l.tree
    from unnest(l_tree, ids) as l (tree, id)
    join resource_providers p on p.root_id = l.id
    where p.uuid <> all (l_uuid)
    union
    select l_tree[coalesce(w.at, h.at)]
    from (
      select b.provider as at, ids[b.provider] as provider_id, class_ids[b.class] as class_id,
        b.total, b.reserved, b.min_unit, b.max_unit, b.step_size, b.allocation_ratio
      from unnest(v_provider, v_class, batch.inventory_total, batch.inventory_reserved, batch.inventory_min_unit,
        batch.inventory_max_unit, batch.inventory_step_size, batch.inventory_allocation_ratio)
        as b (provider, class, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    ) w
    full join (
      select l.at::int as at, v.*
      from unnest(ids) with ordinality as l (id, at) join inventories v on v.provider_id = l.id
    ) h on h.provider_id = w.provider_id and h.class_id = w.class_id
    where (w.total, w.reserved, w.min_unit, w.max_unit, w.step_size, w.allocation_ratio)
      is distinct from (h.total, h.reserved, h.min_unit, h.max_unit, h.step_size, h.allocation_ratio)
    union
    select l_tree[coalesce(w.at, h.at)]
    from (
      select b.provider as at, ids[b.provider] as provider_id, trait_ids[b.trait] as trait_id
      from unnest(q_provider, q_trait) as b (provider, trait)
    ) w
    full join (
      select l.at::int as at, q.provider_id, q.trait_id
      from unnest(ids) with ordinality as l (id, at) join provider_traits q on q.provider_id = l.id
    ) h on h.provider_id = w.provider_id and h.trait_id = w.trait_id
    where w.at is null or h.at is null
    union
    select l_tree[coalesce(w.at, h.at)]
    from (
      select b.provider as at, ids[b.provider] as provider_id, b.aggregate
      from unnest(a_provider, a_uuid) as b (provider, aggregate)
    ) w
    full join (
      select l.at::int as at, q.provider_id, q.aggregate
      from unnest(ids, l_owns) with ordinality as l (id, owns, at)
      join provider_aggregates q on q.provider_id = l.id where l.owns
    ) h on h.provider_id = w.provider_id and h.aggregate = w.aggregate
    where w.at is null or h.at is null
  );
end
$$;
