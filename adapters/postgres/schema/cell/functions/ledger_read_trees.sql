-- Reads the trees of these roots with the records of their latest reports, all as of one moment, and without their aggregates, which reports leave alone.
-- `roots` have no duplicates. A root that does not exist has no providers. A tree has few rows, so they are always found by an index: without statistics,
-- as in a cell that has just registered its hosts, and also with them where the join is with all traits, Postgres would read whole tables for each
-- provider.
create or replace function ledger_read_trees(roots uuid[])
  returns table (
    root uuid, reported jsonb, kept jsonb, version text, is_disabled boolean, ratios json, displaced json, providers json
  )
  language plpgsql stable
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  return query
    select x.root, w.providers, w.kept, w.xmin::text,
      exists (select from hosts h where h.disabled and h.root_provider = x.root),
      (select json_object_agg(o.class, o.ratio) from ratio_overrides o where o.root = x.root),
      (
        select json_object_agg(s.provider || '/' || s.class, s.ratio)
        from ratio_overrides o join resource_providers p on p.root_id = r.id
        join reported_ratios s on s.provider = p.uuid and s.class = o.class
        where o.root = x.root
      ),
      (
        select json_agg(json_build_object(
          'uuid', p.uuid, 'name', p.name, 'parent', parent.uuid, 'generation', p.generation,
          'inventories', (
            select json_object_agg(c.name, json_build_array(
              v.total, v.reserved, v.min_unit, v.max_unit, v.step_size, v.allocation_ratio, v.used
            ))
            from inventories v join resource_classes c on c.id = v.class_id where v.provider_id = p.id
          ),
          'traits', (
            select json_agg(t.name) from provider_traits q join traits t on t.id = q.trait_id where q.provider_id = p.id
          )
        ))
        from resource_providers p left join resource_providers parent on parent.id = p.parent_id where p.root_id = r.id
      )
    from unnest(roots) as x (root)
    left join resource_providers r on r.uuid = x.root
    left join reported_trees w on w.root = x.root;
end
$$;
