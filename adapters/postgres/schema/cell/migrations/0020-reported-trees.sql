-- What the agent of each host has reported of its tree: so much of the stored tree is the agent's, to be changed and removed by its reports. The
-- rest of the tree belongs to others. `providers` is {uuid: {"classes": {name: ratio}, "traits": [name]}}; `kept` lists what servers use beyond what
-- the host offers, with the fields of KeptOffer in core/ledger/merge-report.ts; `refusal` says why the latest report was refused, if it was.
create table reported_trees (
  root uuid primary key references resource_providers (uuid) on delete cascade,
  providers jsonb not null,
  kept jsonb not null default '[]',
  refusal text not null default '',
  updated_at timestamptz not null default now()
);

-- Until now a report replaced everything in its host's tree, so all of it was the agent's.
insert into reported_trees (root, providers)
select r.uuid, jsonb_object_agg(p.uuid, jsonb_build_object(
  'classes', coalesce((
    select jsonb_object_agg(c.name, coalesce(s.ratio, v.allocation_ratio))
    from inventories v join resource_classes c on c.id = v.class_id
    left join ratio_overrides o on o.root = r.uuid and o.class = c.name
    left join reported_ratios s on o.root is not null and s.provider = p.uuid and s.class = c.name
    where v.provider_id = p.id
  ), '{}'),
  'traits', coalesce((
    select jsonb_agg(t.name) from provider_traits q join traits t on t.id = q.trait_id where q.provider_id = p.id
  ), '[]')
))
from resource_providers r join resource_providers p on p.root_id = r.id
where exists (select from hosts h where h.root_provider = r.uuid)
group by r.uuid;
