-- requires: ledger_add_tree_traits
-- Gives the written providers of the batch (`ids`; 0 for a provider that is not written) the traits that the batch lists, and removes all
-- traits from providers that it leaves out. Returns the changed providers.
create or replace function ledger_write_tree_traits(batch ledger_tree_batch, ids int[], left_out int[], trait_ids int[]) returns int[]
  language plpgsql
as $$
declare
  before int[];
  touched int[] := '{}';
begin
  before := array(
    select w.id from unnest(ids || left_out) as w (id) where exists (select from provider_traits q where q.provider_id = w.id)
  );
  -- Most providers are new.
  if cardinality(before) > 0 then
    with wanted as (
      select ids[b.provider] as provider_id, trait_ids[b.trait] as trait_id
      from unnest(batch.trait_provider, batch.trait_trait) as b (provider, trait)
    ),
    removed as (
      delete from provider_traits q
      where q.provider_id = any (before)
        and not exists (select from wanted w where w.provider_id = q.provider_id and w.trait_id = q.trait_id)
      returning q.provider_id
    )
    select coalesce(array_agg(distinct removed.provider_id), '{}') into touched from removed;
  end if;
  return touched || ledger_add_tree_traits(batch, ids, trait_ids);
end
$$;
