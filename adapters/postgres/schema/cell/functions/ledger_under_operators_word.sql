-- The batch with the operators' settings applied: their ratios in place of the reported ones, and the trait COMPUTE_STATUS_DISABLED on the
-- roots of disabled hosts. Cost: two look-ups for each batch when operators have set nothing.
create or replace function ledger_under_operators_word(batch ledger_tree_batch) returns ledger_tree_batch
  language plpgsql stable
  set plan_cache_mode = force_custom_plan
as $$
declare
  roots constant uuid[] := array(
    select batch.provider_uuid[t.root] from unnest(batch.tree_root) with ordinality as t (root, at) order by t.at
  );
  disabled_roots int[];
  trait_at int;
begin
  if exists (select from ratio_overrides o where o.root = any (roots)) then
    batch.inventory_allocation_ratio := array(
      select coalesce(o.ratio, b.ratio)
      from unnest(batch.inventory_provider, batch.inventory_class, batch.inventory_allocation_ratio)
        with ordinality as b (provider, class, ratio, at)
      left join ratio_overrides o
        on o.root = roots[batch.provider_tree[b.provider]] and o.class = batch.classes[b.class]
      order by b.at
    );
  end if;
  disabled_roots := array(
    select t.root from unnest(batch.tree_root, roots) as t (root, uuid)
    where exists (select from hosts h where h.root_provider = t.uuid and h.disabled)
  );
  if cardinality(disabled_roots) > 0 then
    trait_at := array_position(batch.traits, 'COMPUTE_STATUS_DISABLED');
    if trait_at is null then
      batch.traits := batch.traits || 'COMPUTE_STATUS_DISABLED'::text;
      trait_at := cardinality(batch.traits);
    end if;
    disabled_roots := array(
      select d.root from unnest(disabled_roots) as d (root)
      where not exists (
        select from unnest(batch.trait_provider, batch.trait_trait) as q (provider, trait)
        where q.provider = d.root and q.trait = trait_at
      )
    );
    batch.trait_provider := batch.trait_provider || disabled_roots;
    batch.trait_trait := batch.trait_trait || array_fill(trait_at, array[cardinality(disabled_roots)]);
  end if;
  return batch;
end
$$;
