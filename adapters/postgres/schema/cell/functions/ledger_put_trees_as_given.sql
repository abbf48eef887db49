-- requires: ledger_tree_refusals, ledger_trees_share_names, ledger_trees_that_differ, ledger_write_trees
-- Replaces trees, each as a whole or not at all. Returns one row for each tree:
--   kind         replaced | unchanged | generation-conflict | in-use | name-taken | malformed
--   generations  of a replaced or unchanged tree: those of its providers, in their order
--   detail       of a refused tree: the other fields of TreeOutcome, under the same names
--
-- The trees are decided together, which equals deciding them one after the other only if none has a UUID or a name that another one has or
-- had. Raises BT001 otherwise, and the caller must put them one by one.
--
-- Locks: reports of trees wait for each other (they are rare, and trees may take names from each other); then, in the global order, the
-- providers of the trees that differ (by id) and their inventories. Claims on all other trees proceed meanwhile.
-- Raises 23505 or 23503, which the caller retries, when the Placement API created or removed a name or a provider at the same moment.
create or replace function ledger_put_trees_as_given(batch ledger_tree_batch)
  returns table (tree int, kind text, generations int[], detail jsonb)
  language plpgsql
  set plan_cache_mode = force_custom_plan
as $$
declare
  l_uuid constant uuid[] := batch.provider_uuid;
  t_root constant int[] := batch.tree_root;
  tree_count constant int := cardinality(batch.tree_root);
  r_kind text[] := array_fill('unchanged'::text, array[tree_count]);
  r_detail jsonb[] := array_fill(null::jsonb, array[tree_count]);
  -- Which trees are written.
  going boolean[] := array_fill(false, array[tree_count]);
  differing int[];
  refused record;
  changed int;
begin
  perform pg_advisory_xact_lock(7236418052);

  if ledger_trees_share_names(batch) then
    raise exception 'trees of the batch share a uuid or a name' using errcode = 'BT001';
  end if;

  differing := ledger_trees_that_differ(batch);
  if cardinality(differing) > 0 then
    -- 1. Lock the rows that may change.
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

    -- 2. Refuse trees that cannot be written.
    for refused in select * from ledger_tree_refusals(batch, differing) loop
      r_kind[refused.tree] := refused.verdict;
      r_detail[refused.tree] := refused.fields;
    end loop;
    for i in 1..cardinality(differing) loop
      going[differing[i]] := r_detail[differing[i]] is null;
    end loop;

    -- 3. Write the differences.
    foreach changed in array ledger_write_trees(batch, going) loop
      r_kind[changed] := 'replaced';
    end loop;
  end if;

  return query
    select l.tree, r_kind[l.tree],
      case when r_detail[l.tree] is null then array_agg(p.generation order by l.at) end, r_detail[l.tree]
    from unnest(batch.provider_tree, l_uuid) with ordinality as l (tree, uuid, at)
    left join resource_providers p on p.uuid = l.uuid
    group by l.tree order by l.tree;
end
$$;
