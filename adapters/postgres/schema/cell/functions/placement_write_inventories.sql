-- Modes: `replace` sets these inventories and no others. `widen` sets these beside the others. `create` adds one, and `update` changes an
-- existing one. `remove` removes these (null: all). Further kinds: unknown-class, exists, no-inventory, in-use.
create or replace function placement_write_inventories(
  provider_uuid uuid, expected int, mode text, class_names text[], totals int[], reserves int[], min_units int[],
  max_units int[], step_sizes int[], ratios double precision[]
) returns table (kind text, new_generation int, written_at_ms double precision, names text[])
  language plpgsql
as $$
declare
  provider record;
  class_ids int[];
begin
  kind := 'written';
  select p.id, p.generation into provider from resource_providers p where p.uuid = provider_uuid for no key update;
  if not found then
    kind := 'not-found';
  elsif expected is not null and expected <> provider.generation then
    kind := 'generation-conflict';
    new_generation := provider.generation;
  end if;
  if kind <> 'written' then
    return next;
    return;
  end if;

  if mode = 'remove' and class_names is null then
    class_ids := array(select i.class_id from inventories i where i.provider_id = provider.id);
  else
    select coalesce(array_agg(r.id) filter (where r.id is not null), '{}'),
      array_agg(w.name order by w.nr) filter (where r.id is null)
    into class_ids, names
    from unnest(class_names) with ordinality as w (name, nr) left join resource_classes r on r.name = w.name;
  end if;
  if names is not null then
    kind := case when mode = 'remove' then 'no-inventory' else 'unknown-class' end;
  elsif mode in ('create', 'update', 'remove') then
    select array_agg(r.name) into names
    from unnest(class_ids) as w (id) join resource_classes r on r.id = w.id
    where (mode = 'create') = exists (select from inventories i where i.provider_id = provider.id and i.class_id = w.id);
    if names is not null then
      kind := case when mode = 'create' then 'exists' else 'no-inventory' end;
    end if;
  end if;
  if kind = 'written' and mode in ('replace', 'remove') then
    select array_agg(r.name order by i.class_id) into names
    from (
      select v.class_id, v.used from inventories v
      where v.provider_id = provider.id and (v.class_id = any (class_ids)) = (mode = 'remove')
      order by v.class_id for update
    ) i join resource_classes r on r.id = i.class_id
    where i.used > 0;
    if names is not null then
      kind := 'in-use';
    end if;
  end if;
  if kind <> 'written' then
    return next;
    return;
  end if;

  if mode in ('replace', 'remove') then
    delete from inventories v where v.provider_id = provider.id and (v.class_id = any (class_ids)) = (mode = 'remove');
  end if;
  if mode <> 'remove' then
    insert into inventories as v
      (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    select provider.id, r.id, w.total, w.reserved, w.min_unit, w.max_unit, w.step_size, w.allocation_ratio
    from unnest(class_names, totals, reserves, min_units, max_units, step_sizes, ratios)
      as w (name, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    join resource_classes r on r.name = w.name
    order by r.id
    on conflict (provider_id, class_id) do update set total = excluded.total, reserved = excluded.reserved,
      min_unit = excluded.min_unit, max_unit = excluded.max_unit, step_size = excluded.step_size,
      allocation_ratio = excluded.allocation_ratio, updated_at = now();
  end if;
  update resource_providers p set generation = p.generation + 1, updated_at = now() where p.id = provider.id
  returning p.generation, extract(epoch from p.updated_at) * 1000 into new_generation, written_at_ms;
  return next;
end
$$;
