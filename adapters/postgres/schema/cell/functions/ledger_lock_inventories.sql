-- requires: ledger_capacity
-- The second part of ledger_apply: locks the inventories that the batch names and the inventories of which its consumers hold something,
-- and before them the providers, if a generation may rise. `held` is the result of ledger_lock_consumers; this function returns it with
-- the inventories added.
create or replace function ledger_lock_inventories(batch ledger_batch, held ledger_rows) returns ledger_rows
  language plpgsql
as $$
declare
  stored_count constant int := cardinality(held.stored_provider);
  provider_ids constant int[] := array(
    select p.id from unnest(batch.providers) with ordinality as w (uuid, at)
    left join resource_providers p on p.uuid = w.uuid order by w.at
  );
  class_ids constant int[] := array(
    select r.id from unnest(batch.classes) with ordinality as w (name, at)
    left join resource_classes r on r.name = w.name order by w.at
  );
  -- The rows to lock, by source: n for the batch's n-th inventory, -n for that of the n-th stored allocation.
  l_provider int[];
  l_class int[];
  l_source int[];
  i_source int[];
  i_provider int[];
  i_class int[];
  named int[] := array_fill(0, array[cardinality(batch.inventory_provider)]);
  stored int[] := array_fill(0, array[stored_count]);
  place int;
begin
  if true = any (batch.change_bumps) then
    perform 1 from resource_providers p where p.id = any (provider_ids || held.stored_provider) order by p.id for no key update;
  end if;
  select array_agg(provider_ids[b.provider] order by b.at), array_agg(class_ids[b.class] order by b.at), array_agg(b.at)
  into l_provider, l_class, l_source
  from unnest(batch.inventory_provider, batch.inventory_class) with ordinality as b (provider, class, at);
  if stored_count > 0 then
    l_provider := l_provider || held.stored_provider;
    l_class := l_class || held.stored_class;
    l_source := l_source || array(select generate_series(-1, -stored_count, -1));
  end if;
  -- This is a plain join with one function. A row whose lock had to be waited for is evaluated again, and with a union the second
  -- evaluation would return another row of the same inventory.
  select array_agg(l.source), array_agg(l.provider_id), array_agg(l.class_id), coalesce(array_agg(l.used), '{}'),
    array_agg(l.capacity), array_agg(l.min_unit), array_agg(l.max_unit), array_agg(l.step_size), array_agg(l.row)
  into i_source, i_provider, i_class, held.used, held.capacity, held.min_unit, held.max_unit, held.step_size, held.inventory_row
  from (
    select w.source, v.provider_id, v.class_id, v.used,
      ledger_capacity(v.total, v.reserved, v.allocation_ratio) as capacity, v.min_unit, v.max_unit, v.step_size,
      v.ctid as row
    from unnest(l_provider, l_class, l_source) as w (provider_id, class_id, source)
    join inventories v on v.provider_id = w.provider_id and v.class_id = w.class_id
    order by v.provider_id, v.class_id
    for update of v
  ) l;

  -- An inventory that is both named and held occurs several times in a row. The first position counts.
  for x in 1..coalesce(cardinality(i_source), 0) loop
    if x = 1 or i_provider[x] <> i_provider[place] or i_class[x] <> i_class[place] then
      place := x;
    end if;
    if i_source[x] > 0 then
      named[i_source[x]] := place;
    else
      stored[-i_source[x]] := place;
    end if;
  end loop;
  if 0 = any (stored) then
    raise exception 'consumers % hold what no inventory has', batch.consumers using errcode = 'data_corrupted';
  end if;
  held.provider_id := provider_ids;
  held.inventory_provider := i_provider;
  held.inventory_class := i_class;
  held.place_named := named;
  held.place_stored := stored;
  return held;
end
$$;
