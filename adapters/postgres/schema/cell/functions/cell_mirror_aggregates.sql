-- Adds aggregates to roots and removes others. A root that does not exist (yet) is skipped. Raises the generation of changed roots, so that
-- a client of the Placement API that is about to write the same provider must read it again.
create or replace function cell_mirror_aggregates(add_root uuid[], add_aggregate uuid[], drop_root uuid[], drop_aggregate uuid[])
  returns void
  language plpgsql
as $$
declare
  changed int[];
begin
  perform 1 from resource_providers p where p.uuid = any (add_root || drop_root) order by p.id for no key update;
  with added as (
    insert into provider_aggregates (provider_id, aggregate)
    select p.id, w.aggregate from unnest(add_root, add_aggregate) as w (root, aggregate)
    join resource_providers p on p.uuid = w.root
    on conflict do nothing
    returning provider_id
  ),
  dropped as (
    delete from provider_aggregates a
    using unnest(drop_root, drop_aggregate) as w (root, aggregate) join resource_providers p on p.uuid = w.root
    where a.provider_id = p.id and a.aggregate = w.aggregate
    returning a.provider_id
  )
  select array_agg(w.provider_id) into changed
  from (select added.provider_id from added union select dropped.provider_id from dropped) w;
  update resource_providers p set generation = p.generation + 1, updated_at = now() where p.id = any (changed);
end
$$;
