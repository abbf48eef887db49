-- Replaces the overrides of each of these roots by those of the entries (`entry_root` counts the roots from 1) and updates the inventories
-- of their trees. A ratio that is no longer overridden goes back to the agent's reported one.
-- Locks: reports of trees, then the trees' providers (by id), then their inventories.
create or replace function cell_set_ratios(roots uuid[], entry_root int[], entry_class text[], entry_ratio double precision[])
  returns void
  language plpgsql
  set plan_cache_mode = force_custom_plan
as $$
declare
  members int[];
  changed int[];
begin
  perform pg_advisory_xact_lock(7236418052);
  members := array(
    select p.id from resource_providers r join resource_providers p on p.root_id = r.id
    where r.uuid = any (roots) order by p.id for no key update of p
  );
  perform 1 from inventories v where v.provider_id = any (members) order by v.provider_id, v.class_id for update;

  -- A ratio that is overridden for the first time still has the agent's value.
  insert into reported_ratios (provider, class, ratio)
  select p.uuid, c.name, v.allocation_ratio
  from inventories v
  join resource_providers p on p.id = v.provider_id
  join resource_providers r on r.id = p.root_id
  join resource_classes c on c.id = v.class_id
  join unnest(entry_root, entry_class) as e (root, class) on roots[e.root] = r.uuid and e.class = c.name
  where v.provider_id = any (members)
    and not exists (select from ratio_overrides o where o.root = r.uuid and o.class = c.name)
  on conflict (provider, class) do update set ratio = excluded.ratio;

  with wanted as (
    select v.provider_id, v.class_id,
      coalesce(e.ratio, case when o.ratio is not null then s.ratio end, v.allocation_ratio) as ratio
    from inventories v
    join resource_providers p on p.id = v.provider_id
    join resource_providers r on r.id = p.root_id
    join resource_classes c on c.id = v.class_id
    left join unnest(entry_root, entry_class, entry_ratio) as e (root, class, ratio)
      on roots[e.root] = r.uuid and e.class = c.name
    left join ratio_overrides o on o.root = r.uuid and o.class = c.name
    left join reported_ratios s on s.provider = p.uuid and s.class = c.name
    where v.provider_id = any (members)
  ),
  written as (
    update inventories v set allocation_ratio = w.ratio, updated_at = now()
    from wanted w
    where v.provider_id = w.provider_id and v.class_id = w.class_id and v.allocation_ratio <> w.ratio
    returning v.provider_id
  )
  select coalesce(array_agg(distinct written.provider_id), '{}') into changed from written;
  update resource_providers p set generation = p.generation + 1, updated_at = now() where p.id = any (changed);

  delete from ratio_overrides o where o.root = any (roots);
  insert into ratio_overrides (root, class, ratio)
  select roots[e.root], e.class, e.ratio from unnest(entry_root, entry_class, entry_ratio) as e (root, class, ratio);
  delete from reported_ratios s
  using resource_providers p, resource_providers r
  where s.provider = p.uuid and r.id = p.root_id and p.id = any (members)
    and not exists (select from ratio_overrides o where o.root = r.uuid and o.class = s.class);
end
$$;
