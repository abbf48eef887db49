-- The Placement API's writes to one provider, each a transaction of one call: rules on generations as upstream has them. A
-- null expected generation is not checked. Locks the provider, then its inventories by class_id.
--   kind  written | not-found | generation-conflict, and what each function says of its own
--   names what the refusal is about

-- Modes: `replace` - these inventories and no others; `widen` - these beside the others; `create` - one more, `update` - one that is
-- there; `remove` - take these away (null: all). Further kinds: unknown-class, exists, no-inventory, in-use.
create function placement_write_inventories(
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

-- Replaces a provider's traits. The same set again writes nothing and leaves the generation. Further kind: unknown-names.
create function placement_set_traits(provider_uuid uuid, expected int, trait_names text[])
  returns table (kind text, new_generation int, written_at_ms double precision, names text[])
  language plpgsql
as $$
declare
  provider record;
  wanted int[];
begin
  kind := 'written';
  select p.id, p.generation, extract(epoch from p.updated_at) * 1000 as updated_at_ms into provider
  from resource_providers p where p.uuid = provider_uuid for no key update;
  if not found then
    kind := 'not-found';
    return next;
    return;
  end if;
  new_generation := provider.generation;
  written_at_ms := provider.updated_at_ms;
  if expected is not null and expected <> provider.generation then
    kind := 'generation-conflict';
    return next;
    return;
  end if;

  -- Shared locks: a trait that is being deleted must not gain a provider.
  wanted := array(select t.id from traits t where t.name = any (trait_names) order by t.id for key share);
  if cardinality(wanted) < cardinality(trait_names) then
    kind := 'unknown-names';
    names := array(
      select w.name from unnest(trait_names) with ordinality as w (name, nr)
      where not exists (select from traits t where t.name = w.name) order by w.nr
    );
  elsif wanted <> array(select h.trait_id from provider_traits h where h.provider_id = provider.id order by h.trait_id) then
    delete from provider_traits h where h.provider_id = provider.id and h.trait_id <> all (wanted);
    insert into provider_traits (provider_id, trait_id)
    select provider.id, w.id from unnest(wanted) as w (id) on conflict do nothing;
    update resource_providers p set generation = p.generation + 1, updated_at = now() where p.id = provider.id
    returning p.generation, extract(epoch from p.updated_at) * 1000 into new_generation, written_at_ms;
  end if;
  return next;
end
$$;

-- Replaces a provider's aggregates. With an expected generation it is raised, also for the same set again; without one it stays.
create function placement_set_aggregates(provider_uuid uuid, expected int, wanted uuid[])
  returns table (kind text, new_generation int, written_at_ms double precision)
  language plpgsql
as $$
declare
  provider record;
begin
  kind := 'written';
  select p.id, p.generation, extract(epoch from p.updated_at) * 1000 as updated_at_ms into provider
  from resource_providers p where p.uuid = provider_uuid for no key update;
  if not found then
    kind := 'not-found';
    return next;
    return;
  end if;
  new_generation := provider.generation;
  written_at_ms := provider.updated_at_ms;
  if expected is not null and expected <> provider.generation then
    kind := 'generation-conflict';
    return next;
    return;
  end if;
  delete from provider_aggregates a where a.provider_id = provider.id and a.aggregate <> all (wanted);
  insert into provider_aggregates (provider_id, aggregate)
  select provider.id, w.aggregate from unnest(wanted) as w (aggregate) on conflict do nothing;
  if expected is not null then
    update resource_providers p set generation = p.generation + 1, updated_at = now() where p.id = provider.id
    returning p.generation, extract(epoch from p.updated_at) * 1000 into new_generation, written_at_ms;
  end if;
  return next;
end
$$;
