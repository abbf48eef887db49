-- Gives the written providers of the batch (`ids`; 0 for a provider that is not written) the aggregates that the batch lists, where the
-- batch owns them, and removes all aggregates from providers that it leaves out. Returns the changed providers.
create or replace function ledger_write_tree_aggregates(batch ledger_tree_batch, ids int[], left_out int[]) returns int[]
  language plpgsql
as $$
declare
  touched int[];
begin
  with wanted as (
    select ids[b.provider] as provider_id, b.aggregate
    from unnest(batch.aggregate_provider, batch.aggregate_uuid) as b (provider, aggregate)
    where ids[b.provider] > 0
  ),
  removed as (
    delete from provider_aggregates q
    where q.provider_id in (
        select l.id from unnest(ids, batch.provider_owns_aggregates) as l (id, owns) where l.owns
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
  select coalesce(array_agg(w.provider_id), '{}') into touched
  from (select removed.provider_id from removed union select added.provider_id from added) w;
  return touched;
end
$$;
