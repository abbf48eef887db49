-- Why trees of the batch cannot be written: the first reason for each of the trees `among`, whose providers are locked. A tree that can be
-- written has no row.
create or replace function ledger_tree_refusals(batch ledger_tree_batch, among int[])
  returns table (tree int, verdict text, fields jsonb)
  language plpgsql
as $$
declare
  l_uuid constant uuid[] := batch.provider_uuid;
  t_root constant int[] := batch.tree_root;
  v_provider constant int[] := batch.inventory_provider;
  v_class constant int[] := batch.inventory_class;
  class_names constant text[] := batch.classes;
begin
  return query
    with listed as (
      select l.at, l.tree, l.uuid, l.name, l.expected, p.id, p.generation, p.root_id, r.id as own_root_id
      from unnest(batch.provider_tree, l_uuid, batch.provider_name, batch.provider_expected) with ordinality as l (tree, uuid, name, expected, at)
      left join resource_providers p on p.uuid = l.uuid
      left join resource_providers r on r.uuid = l_uuid[t_root[l.tree]]
      where l.tree = any (among)
    ),
    reasons as (
      select l.tree, 1 as rank, l.at, null as class, 'malformed' as verdict,
        jsonb_build_object('provider', l.uuid, 'why', 'the provider belongs to another tree') as fields
      from listed l where l.root_id is not null and l.root_id is distinct from l.own_root_id
      union all
      select l.tree, 2, l.at, null, 'generation-conflict',
        jsonb_build_object('provider', l.uuid, 'expected', nullif(l.expected, -2), 'actual', l.generation)
      from listed l where l.expected <> -1 and l.expected <> coalesce(l.generation, -2)
      union all
      select l.tree, 3, l.at, null, 'name-taken', jsonb_build_object('provider', l.uuid, 'name', l.name)
      from listed l join resource_providers p on p.name = l.name
      where p.root_id is distinct from l.own_root_id
      union all
      select l.tree, 4, l.at, c.name, 'in-use', jsonb_build_object('provider', l.uuid, 'resourceClass', c.name)
      from listed l join inventories v on v.provider_id = l.id join resource_classes c on c.id = v.class_id
      where v.used > 0 and not exists (
        select from unnest(v_provider, v_class) as b (provider, class)
        where b.provider = l.at and class_names[b.class] = c.name
      )
      union all
      select l.tree, 5, null, p.uuid::text, 'in-use', jsonb_build_object('provider', p.uuid, 'resourceClass', null)
      from listed l join resource_providers p on p.root_id = l.id
      where l.id = l.own_root_id and p.uuid <> all (l_uuid)
        and exists (select from inventories v where v.provider_id = p.id and v.used > 0)
    )
    select distinct on (reasons.tree) reasons.tree, reasons.verdict, reasons.fields
    from reasons order by reasons.tree, reasons.rank, reasons.at, reasons.class collate "C";
end
$$;
