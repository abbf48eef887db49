-- requires: ledger_put_trees_as_given, ledger_under_operators_word
-- Replaces trees like ledger_put_trees_as_given, with the operators' settings applied. Takes the lock of reports of trees first, as every
-- change of these settings does. A tree has few rows, so they are always found by an index: without statistics, as in a cell that has just registered its
-- hosts, Postgres would read whole tables for each tree.
create or replace function ledger_put_trees(batch ledger_tree_batch)
  returns table (tree int, kind text, generations int[], detail jsonb)
  language plpgsql
  set plan_cache_mode = force_custom_plan
  set enable_seqscan = off
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
