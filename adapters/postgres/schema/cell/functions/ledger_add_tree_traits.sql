-- Gives the written providers of the batch (`ids`; 0 for a provider that is not written) the traits that the batch lists, where they lack them. Returns
-- the changed providers. One plan serves all its calls and all checks of foreign keys, as in ledger_insert_providers.
create or replace function ledger_add_tree_traits(batch ledger_tree_batch, ids int[], trait_ids int[]) returns int[]
  language plpgsql
  set plan_cache_mode = force_generic_plan
as $$
declare
  changed int[];
begin
  with added as (
    insert into provider_traits (provider_id, trait_id)
    select ids[b.provider], trait_ids[b.trait]
    from unnest(batch.trait_provider, batch.trait_trait) as b (provider, trait)
    where ids[b.provider] > 0
    on conflict do nothing
    returning provider_id
  )
  select coalesce(array_agg(distinct added.provider_id), '{}') into changed from added;
  return changed;
end
$$;
