-- requires: placement_create_providers
-- Makes the writes that have no obstacle, and returns a row for each of them. A write without a row changed nothing: its provider does not
-- exist or has another generation, a name is unknown or taken, or an inventory is in use. The function for the single write finds out
-- which. The rules on generations are those of placement_write_inventories, placement_set_traits and placement_set_aggregates.
-- Locks: providers by id (for creations the parents), then traits by id, then inventories by provider_id, class_id.
create or replace function placement_write(batch placement_writes)
  returns table (at int, root uuid, generation int, written_at_ms double precision)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  b_kinds constant text[] := batch.kinds;
  b_expected constant int[] := batch.expected;
  b_class_end constant int[] := batch.class_end;
  b_trait_end constant int[] := batch.trait_end;
  b_aggregate_end constant int[] := batch.aggregate_end;
  b_aggregates constant uuid[] := batch.aggregates;
  b_totals constant int[] := batch.totals;
  b_reserves constant int[] := batch.reserves;
  b_min_units constant int[] := batch.min_units;
  b_max_units constant int[] := batch.max_units;
  b_step_sizes constant int[] := batch.step_sizes;
  b_ratios constant double precision[] := batch.ratios;
  class_ids int[];
  trait_ids int[];
  -- Writes whose provider is locked, and these providers, sorted by id.
  l_at int[];
  l_id int[];
  -- For the current kind: writes, providers, and each write's part of the list for this kind.
  w_at int[];
  w_id int[];
  w_lo int[];
  w_hi int[];
  in_use int[];
  removes boolean;
  -- Writes that raise the generation, and writes that leave it.
  raised int[] := '{}';
  kept int[] := '{}';
begin
  select coalesce(array_agg(l.at), '{}'), coalesce(array_agg(l.id), '{}') into l_at, l_id
  from (
    select w.at::int as at, p.id
    from unnest(batch.targets, b_expected) with ordinality as w (uuid, expected, at)
    join resource_providers p on p.uuid = w.uuid
    where w.expected is null or p.generation = w.expected
    order by p.id for no key update of p
  ) l;

  if 'create' = any (b_kinds) then
    return query select c.at, c.root, c.generation, c.written_at_ms from placement_create_providers(batch, l_at, l_id) as c;
  end if;

  if 'traits' = any (b_kinds) then
    -- Shared locks, because a trait that is being deleted must not be added to a provider.
    perform from traits t where t.name = any (batch.traits) order by t.id for key share;
    trait_ids := array(
      select t.id from unnest(batch.traits) with ordinality as w (name, at) left join traits t on t.name = w.name order by w.at
    );
    select kept || coalesce(array_agg(w.at) filter (where w.wanted = w.present), '{}'),
      array_agg(w.at) filter (where w.wanted <> w.present), array_agg(w.id) filter (where w.wanted <> w.present),
      array_agg(w.lo) filter (where w.wanted <> w.present), array_agg(w.hi) filter (where w.wanted <> w.present)
    into kept, w_at, w_id, w_lo, w_hi
    from (
      select r.*, array(select s.id from unnest(trait_ids[r.lo:r.hi]) as s (id) order by s.id) as wanted,
        array(select h.trait_id from provider_traits h where h.provider_id = r.id order by h.trait_id) as present
      from (
        select l.at, l.id, coalesce(b_trait_end[l.at - 1], 0) + 1 as lo, b_trait_end[l.at] as hi
        from unnest(l_at, l_id) as l (at, id) where b_kinds[l.at] = 'traits'
      ) r
      where array_position(trait_ids[r.lo:r.hi], null) is null
    ) w;
    if w_at is not null then
      delete from provider_traits h using unnest(w_id, w_lo, w_hi) as w (id, lo, hi)
      where h.provider_id = w.id and h.trait_id <> all (trait_ids[w.lo:w.hi]);
      insert into provider_traits (provider_id, trait_id)
      select w.id, trait_ids[n.at] from unnest(w_id, w_lo, w_hi) as w (id, lo, hi), generate_series(w.lo, w.hi) as n (at)
      on conflict do nothing;
      raised := raised || w_at;
    end if;
  end if;

  if 'inventories' = any (b_kinds) then
    class_ids := array(
      select r.id from unnest(batch.classes) with ordinality as w (name, at)
      left join resource_classes r on r.name = w.name order by w.at
    );
    select coalesce(array_agg(r.at), '{}'), array_agg(r.id), array_agg(r.lo), array_agg(r.hi) into w_at, w_id, w_lo, w_hi
    from (
      select l.at, l.id, coalesce(b_class_end[l.at - 1], 0) + 1 as lo, b_class_end[l.at] as hi
      from unnest(l_at, l_id) as l (at, id) where b_kinds[l.at] = 'inventories'
    ) r
    where array_position(class_ids[r.lo:r.hi], null) is null;

    select coalesce(array_agg(v.at) filter (where v.goes and v.used > 0), '{}'), coalesce(bool_or(v.goes), false)
    into in_use, removes
    from (
      select w.at, v.used, v.class_id <> all (class_ids[w.lo:w.hi]) as goes
      from unnest(w_at, w_id, w_lo, w_hi) as w (at, id, lo, hi) join inventories v on v.provider_id = w.id
      order by v.provider_id, v.class_id for update of v
    ) v;
    if removes then
      delete from inventories v using unnest(w_at, w_id, w_lo, w_hi) as w (at, id, lo, hi)
      where v.provider_id = w.id and v.class_id <> all (class_ids[w.lo:w.hi]) and w.at <> all (in_use);
    end if;
    insert into inventories as v
      (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    select w.id, class_ids[n.at], b_totals[n.at], b_reserves[n.at], b_min_units[n.at], b_max_units[n.at], b_step_sizes[n.at],
      b_ratios[n.at]
    from unnest(w_at, w_id, w_lo, w_hi) as w (at, id, lo, hi), generate_series(w.lo, w.hi) as n (at)
    where w.at <> all (in_use)
    order by w.id, class_ids[n.at]
    on conflict (provider_id, class_id) do update set total = excluded.total, reserved = excluded.reserved,
      min_unit = excluded.min_unit, max_unit = excluded.max_unit, step_size = excluded.step_size,
      allocation_ratio = excluded.allocation_ratio, updated_at = now();
    raised := raised || array(select w.at from unnest(w_at) as w (at) where w.at <> all (in_use));
  end if;

  if 'aggregates' = any (b_kinds) then
    select array_agg(l.at), array_agg(l.id), array_agg(coalesce(b_aggregate_end[l.at - 1], 0) + 1),
      array_agg(b_aggregate_end[l.at]), raised || coalesce(array_agg(l.at) filter (where b_expected[l.at] is not null), '{}'),
      kept || coalesce(array_agg(l.at) filter (where b_expected[l.at] is null), '{}')
    into w_at, w_id, w_lo, w_hi, raised, kept
    from unnest(l_at, l_id) as l (at, id) where b_kinds[l.at] = 'aggregates';
    delete from provider_aggregates a using unnest(w_id, w_lo, w_hi) as w (id, lo, hi)
    where a.provider_id = w.id and a.aggregate <> all (b_aggregates[w.lo:w.hi]);
    insert into provider_aggregates (provider_id, aggregate)
    select w.id, b_aggregates[n.at] from unnest(w_id, w_lo, w_hi) as w (id, lo, hi), generate_series(w.lo, w.hi) as n (at)
    on conflict do nothing;
  end if;

  return query
    with risen as (
      update resource_providers p set generation = p.generation + 1, updated_at = now()
      from unnest(l_at, l_id) as l (at, id) where l.at = any (raised) and p.id = l.id
      returning l.at, p.generation, p.updated_at
    )
    select r.at, null::uuid, r.generation, (extract(epoch from r.updated_at) * 1000)::float8 from risen r
    union all
    select l.at, null::uuid, p.generation, (extract(epoch from p.updated_at) * 1000)::float8
    from unnest(l_at, l_id) as l (at, id) join resource_providers p on p.id = l.id where l.at = any (kept);
end
$$;
