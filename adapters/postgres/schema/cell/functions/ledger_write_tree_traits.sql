-- Gives the written providers of the batch (`ids`; 0 for a provider that is not written) the traits that the batch lists, and removes all
-- traits from providers that it leaves out. Returns the changed providers.
create or replace function ledger_write_tree_traits(batch ledger_tree_batch, ids int[], left_out int[], trait_ids int[]) returns int[]
  language plpgsql
as $$
declare
  touched int[];
begin
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
  select coalesce(array_agg(w.provider_id), '{}') into touched
  from (select removed.provider_id from removed union select added.provider_id from added) w;
  return touched;
end
$$;
