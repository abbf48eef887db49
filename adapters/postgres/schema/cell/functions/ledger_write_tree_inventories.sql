-- requires: ledger_put_tree_inventories
-- Gives the written providers of the batch (`ids`; 0 for a provider that is not written) the inventories that the batch lists, and removes
-- all inventories from providers that it leaves out. Returns the changed providers.
create or replace function ledger_write_tree_inventories(batch ledger_tree_batch, ids int[], left_out int[], class_ids int[]) returns int[]
  language plpgsql
as $$
declare
  before int[];
  removed int[] := '{}';
begin
  before := array(
    select w.id from unnest(ids || left_out) as w (id) where exists (select from inventories q where q.provider_id = w.id)
  );
  -- Most providers are new.
  if cardinality(before) > 0 then
    with wanted as (
      select ids[b.provider] as provider_id, class_ids[b.class] as class_id
      from unnest(batch.inventory_provider, batch.inventory_class) as b (provider, class)
    ),
    written as (
      delete from inventories v
      where v.provider_id = any (before)
        and not exists (select from wanted w where w.provider_id = v.provider_id and w.class_id = v.class_id)
      returning v.provider_id
    )
    select coalesce(array_agg(distinct written.provider_id), '{}') into removed from written;
  end if;
  return removed || ledger_put_tree_inventories(batch, ids, class_ids);
end
$$;
