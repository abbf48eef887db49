-- The ledger's writes of provider trees: `decideTree` of core/ledger, in SQL, a batch at a time.

-- A batch of provider trees as parallel arrays; adapters/postgres/encode-trees.ts makes its literal. All indexes count from
-- 1. Every tree is well formed in itself: its root first, parents before children, no uuid and no name twice.
create type ledger_tree_batch as (
  -- The root of each tree, as an index into the providers.
  tree_root int[],
  provider_tree int[],
  provider_uuid uuid[],
  provider_name text[],
  -- An index into the providers; 0: the root.
  provider_parent int[],
  -- -1: any; -2: must be new; else the generation.
  provider_expected int[],
  -- False: its aggregates stay as they are.
  provider_owns_aggregates boolean[],
  classes text[],
  inventory_provider int[],
  inventory_class int[],
  inventory_total int[],
  inventory_reserved int[],
  inventory_min_unit int[],
  inventory_max_unit int[],
  inventory_step_size int[],
  inventory_allocation_ratio double precision[],
  traits text[],
  trait_provider int[],
  trait_trait int[],
  aggregate_provider int[],
  aggregate_uuid uuid[]
);

-- Which trees of the batch are not what the ledger holds. Reads only. A tree of which it says nothing can be answered
-- "unchanged".
create function ledger_trees_that_differ(batch ledger_tree_batch) returns int[]
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

-- Replaces trees, each all or nothing. One row a tree:
--   kind         replaced | unchanged | generation-conflict | in-use | name-taken | malformed
--   generations  of a tree that is now as listed: those of its providers, in their order
--   detail       otherwise: the other fields of TreeOutcome, under the same names
--
-- The trees are decided together, which is the same as one after the other only if none has a uuid or a name that another one
-- has, or had. Raises BT001 if that is not so: put them one by one then.
--
-- Locks: reports of trees wait for each other (they are rare, and trees may take names from each other); then, in the global
-- order, the providers of the trees that differ (by id) and their inventories. Claims go on meanwhile on all other trees.
-- 23505 and 23503 are raised when the Placement API created or removed a name or a provider at the same moment: to be retried.
create function ledger_put_trees(batch ledger_tree_batch)
  returns table (tree int, kind text, generations int[], detail jsonb)
  language plpgsql
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
  tree_count constant int := cardinality(batch.tree_root);

  r_kind text[] := array_fill('unchanged'::text, array[tree_count]);
  r_detail jsonb[] := array_fill(null::jsonb, array[tree_count]);
  -- Trees to write.
  going boolean[] := array_fill(false, array[tree_count]);
  differing int[];
  refused record;

  -- Of listed providers (0: of a tree that is not written), the ids and which of them are new.
  id_sequence constant regclass := pg_get_serial_sequence('resource_providers', 'id');
  ids int[];
  is_new boolean[];
  class_ids int[];
  trait_ids int[];
  -- Of what the lists leave out.
  left_out int[];
  left_out_trees int[];
  -- Providers that differ, by id.
  touched int[] := '{}';
  more int[];
begin
  perform pg_advisory_xact_lock(7236418052);

  if exists (
    select from (
      select l.uuid, l.tree from unnest(l_uuid, l_tree) as l (uuid, tree)
      union
      select p.uuid, l_tree[t.root]
      from unnest(t_root) as t (root)
      join resource_providers r on r.uuid = l_uuid[t.root] join resource_providers p on p.root_id = r.id
    ) u group by u.uuid having count(distinct u.tree) > 1
  ) or exists (
    select from (
      select l.name, l.tree from unnest(l_name, l_tree) as l (name, tree)
      union
      select p.name, l_tree[t.root]
      from unnest(t_root) as t (root)
      join resource_providers r on r.uuid = l_uuid[t.root] join resource_providers p on p.root_id = r.id
    ) u group by u.name having count(distinct u.tree) > 1
  ) then
    raise exception 'trees of the batch share a uuid or a name' using errcode = 'BT001';
  end if;

  differing := ledger_trees_that_differ(batch);
  if cardinality(differing) > 0 then
    -- 1. Lock what may change.
    perform 1 from resource_providers p
    where p.id in (
      select m.id
      from unnest(differing) as d (tree)
      join resource_providers r on r.uuid = l_uuid[t_root[d.tree]] join resource_providers m on m.root_id = r.id
    )
    order by p.id for update;
    perform 1 from inventories v
    where v.provider_id in (
      select m.id
      from unnest(differing) as d (tree)
      join resource_providers r on r.uuid = l_uuid[t_root[d.tree]] join resource_providers m on m.root_id = r.id
    )
    order by v.provider_id, v.class_id for update;

    -- 2. Refuse: the first reason of each tree.
    for refused in
      with listed as (
        select l.at, l.tree, l.uuid, l.name, l.expected, p.id, p.generation, p.root_id, r.id as own_root_id
        from unnest(l_tree, l_uuid, l_name, l_expected) with ordinality as l (tree, uuid, name, expected, at)
        left join resource_providers p on p.uuid = l.uuid
        left join resource_providers r on r.uuid = l_uuid[t_root[l.tree]]
        where l.tree = any (differing)
      ),
      reasons as (
        select l.tree, 1 as rank, l.at, null as class, 'malformed' as verdict,
          jsonb_build_object('provider', l.uuid, 'why', 'the provider belongs to another tree') as fields
        from listed l where l.root_id is not null and l.root_id is distinct from l.own_root_id
        union all
        select l.tree, 2, l.at, null, 'generation-conflict',
          jsonb_build_object('provider', l.uuid, 'expected', nullif(l.expected, -2), 'actual', l.generation)
        from listed l where l.expected <> -1 and l.expected <> coalesce(l.generation, -2)
        union all
        select l.tree, 3, l.at, null, 'name-taken', jsonb_build_object('provider', l.uuid, 'name', l.name)
        from listed l join resource_providers p on p.name = l.name
        where p.root_id is distinct from l.own_root_id
        union all
        select l.tree, 4, l.at, c.name, 'in-use', jsonb_build_object('provider', l.uuid, 'resourceClass', c.name)
        from listed l join inventories v on v.provider_id = l.id join resource_classes c on c.id = v.class_id
        where v.used > 0 and not exists (
          select from unnest(v_provider, v_class) as b (provider, class)
          where b.provider = l.at and batch.classes[b.class] = c.name
        )
        union all
        select l.tree, 5, null, p.uuid::text, 'in-use', jsonb_build_object('provider', p.uuid, 'resourceClass', null)
        from listed l join resource_providers p on p.root_id = l.id
        where l.id = l.own_root_id and p.uuid <> all (l_uuid)
          and exists (select from inventories v where v.provider_id = p.id and v.used > 0)
      )
      select distinct on (reasons.tree) reasons.tree, reasons.verdict, reasons.fields
      from reasons order by reasons.tree, reasons.rank, reasons.at, reasons.class collate "C"
    loop
      r_kind[refused.tree] := refused.verdict;
      r_detail[refused.tree] := refused.fields;
    end loop;
    for i in 1..cardinality(differing) loop
      going[differing[i]] := r_detail[differing[i]] is null;
    end loop;

    -- 3. Names, and ids for what is new.
    insert into resource_classes (name)
    select w.name from unnest(batch.classes) as w (name)
    where not exists (select from resource_classes r where r.name = w.name) order by w.name
    on conflict do nothing;
    insert into traits (name)
    select w.name from unnest(batch.traits) as w (name)
    where not exists (select from traits r where r.name = w.name) order by w.name
    on conflict do nothing;
    class_ids := array(
      select r.id from unnest(batch.classes) with ordinality as w (name, at)
      join resource_classes r on r.name = w.name order by w.at
    );
    trait_ids := array(
      select r.id from unnest(batch.traits) with ordinality as w (name, at)
      join traits r on r.name = w.name order by w.at
    );
    select array_agg(l.id order by l.at), array_agg(l.is_new order by l.at) into ids, is_new
    from (
      select l.at, going[l.tree] and p.id is null as is_new,
        case
          when not going[l.tree] then 0
          when p.id is null then nextval(id_sequence)::int
          else p.id
        end as id
      from unnest(l_tree, l_uuid) with ordinality as l (tree, uuid, at)
      left join resource_providers p on p.uuid = l.uuid
    ) l;
    select coalesce(array_agg(p.id), '{}'), coalesce(array_agg(t.at::int), '{}') into left_out, left_out_trees
    from unnest(t_root) with ordinality as t (root, at)
    join resource_providers p on p.root_id = ids[t.root]
    where p.uuid <> all (l_uuid);

    -- 4. Write what differs. Old names and what is left out give way first, so that members may trade names.
    update resource_providers p set name = 'replaced ' || p.uuid
    from (
      select w.id from unnest(left_out) as w (id)
      union all
      select l.id from unnest(ids, l_name) as l (id, name) join resource_providers o on o.id = l.id where o.name <> l.name
    ) w
    where p.id = w.id;
    insert into resource_providers (id, uuid, name, parent_id, root_id) overriding system value
    select l.id, l.uuid, l.name, ids[l.parent], ids[t_root[l.tree]]
    from unnest(ids, l_uuid, l_name, l_parent, l_tree, is_new) as l (id, uuid, name, parent, tree, is_new)
    where l.is_new;
    with written as (
      update resource_providers p set name = l.name, parent_id = ids[l.parent]
      from unnest(ids, l_name, l_parent) as l (id, name, parent)
      where p.id = l.id and (p.name <> l.name or p.parent_id is distinct from ids[l.parent])
      returning p.id
    )
    select coalesce(array_agg(written.id), '{}') into more from written;
    touched := touched || more;

    with wanted as (
      select ids[b.provider] as provider_id, class_ids[b.class] as class_id
      from unnest(v_provider, v_class) as b (provider, class)
    ),
    written as (
      delete from inventories v
      where v.provider_id in (select w.id from unnest(ids || left_out) as w (id))
        and not exists (select from wanted w where w.provider_id = v.provider_id and w.class_id = v.class_id)
      returning v.provider_id
    )
    select coalesce(array_agg(distinct written.provider_id), '{}') into more from written;
    touched := touched || more;
    with written as (
      insert into inventories as v
        (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
      select ids[b.provider], class_ids[b.class],
        b.total, b.reserved, b.min_unit, b.max_unit, b.step_size, b.allocation_ratio
      from unnest(v_provider, v_class, batch.inventory_total, batch.inventory_reserved, batch.inventory_min_unit,
        batch.inventory_max_unit, batch.inventory_step_size, batch.inventory_allocation_ratio)
        as b (provider, class, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
      where ids[b.provider] > 0
      on conflict (provider_id, class_id) do update
      set total = excluded.total, reserved = excluded.reserved, min_unit = excluded.min_unit,
        max_unit = excluded.max_unit, step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio,
        updated_at = now()
      where (v.total, v.reserved, v.min_unit, v.max_unit, v.step_size, v.allocation_ratio) is distinct from
        (excluded.total, excluded.reserved, excluded.min_unit, excluded.max_unit, excluded.step_size,
          excluded.allocation_ratio)
      returning v.provider_id
    )
    select coalesce(array_agg(distinct written.provider_id), '{}') into more from written;
    touched := touched || more;

    with wanted as (
      select ids[b.provider] as provider_id, trait_ids[b.trait] as trait_id
      from unnest(batch.trait_provider, batch.trait_trait) as b (provider, trait)
      where ids[b.provider] > 0
    ),
    removed as (
      delete from provider_traits q
      where q.provider_id in (select w.id from unnest(ids || left_out) as w (id))
        and not exists (select from wanted w where w.provider_id = q.provider_id and w.trait_id = q.trait_id)
      returning q.provider_id
    ),
    added as (
      insert into provider_traits (provider_id, trait_id)
      select w.provider_id, w.trait_id from wanted w
      on conflict do nothing
      returning provider_id
    )
    select coalesce(array_agg(w.provider_id), '{}') into more
    from (select removed.provider_id from removed union select added.provider_id from added) w;
    touched := touched || more;

    with wanted as (
      select ids[b.provider] as provider_id, b.aggregate
      from unnest(batch.aggregate_provider, batch.aggregate_uuid) as b (provider, aggregate)
      where ids[b.provider] > 0
    ),
    removed as (
      delete from provider_aggregates q
      where q.provider_id in (
          select l.id from unnest(ids, l_owns) as l (id, owns) where l.owns
          union all
          select w.id from unnest(left_out) as w (id)
        )
        and not exists (select from wanted w where w.provider_id = q.provider_id and w.aggregate = q.aggregate)
      returning q.provider_id
    ),
    added as (
      insert into provider_aggregates (provider_id, aggregate)
      select w.provider_id, w.aggregate from wanted w
      on conflict do nothing
      returning provider_id
    )
    select coalesce(array_agg(w.provider_id), '{}') into more
    from (select removed.provider_id from removed union select added.provider_id from added) w;
    touched := touched || more;

    delete from resource_providers p where p.id in (select w.id from unnest(left_out) as w (id));
    update resource_providers p set generation = p.generation + 1, updated_at = now()
    from (select distinct l.id from unnest(ids, is_new) as l (id, is_new) where l.id > 0 and not l.is_new) l
    where p.id = l.id and p.id in (select w.id from unnest(touched) as w (id));
    for i in 1..cardinality(left_out_trees) loop
      r_kind[left_out_trees[i]] := 'replaced';
    end loop;
    more := array(
      select distinct l.tree from unnest(l_tree, ids, is_new) as l (tree, id, is_new)
      where l.id > 0 and (l.is_new or l.id in (select w.id from unnest(touched) as w (id)))
    );
    for i in 1..cardinality(more) loop
      r_kind[more[i]] := 'replaced';
    end loop;
  end if;

  return query
    select l.tree, r_kind[l.tree],
      case when r_detail[l.tree] is null then array_agg(p.generation order by l.at) end, r_detail[l.tree]
    from unnest(l_tree, l_uuid) with ordinality as l (tree, uuid, at)
    left join resource_providers p on p.uuid = l.uuid
    group by l.tree order by l.tree;
end
$$;
