-- Gives the written providers of the batch (`ids`; 0 for a provider that is not written) the inventories that the batch lists. Returns the changed
-- providers. One plan serves all its calls and all checks of foreign keys, as in ledger_insert_providers.
create or replace function ledger_put_tree_inventories(batch ledger_tree_batch, ids int[], class_ids int[]) returns int[]
  language plpgsql
  set plan_cache_mode = force_generic_plan
as $$
declare
  changed int[];
begin
  with written as (
    insert into inventories as v
      (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    select ids[b.provider], class_ids[b.class],
      b.total, b.reserved, b.min_unit, b.max_unit, b.step_size, b.allocation_ratio
    from unnest(batch.inventory_provider, batch.inventory_class, batch.inventory_total, batch.inventory_reserved, batch.inventory_min_unit,
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
  select coalesce(array_agg(distinct written.provider_id), '{}') into changed from written;
  return changed;
end
$$;
