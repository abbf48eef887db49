-- Creates the new providers of a batch of placement_write, which has locked their parents: `locked_at` are the writes with a locked
-- provider, `locked_id` these providers. Returns rows like placement_write.
create or replace function placement_create_providers(batch placement_writes, locked_at int[], locked_id int[])
  returns table (at int, root uuid, generation int, written_at_ms double precision)
  language plpgsql
as $$
begin
  return query
    with new as materialized (
      select w.at::int as at, w.uuid, w.name, p.id as parent_id, p.root_id,
        nextval(pg_get_serial_sequence('resource_providers', 'id'))::int as id
      from unnest(batch.kinds, batch.targets, batch.new_uuids, batch.new_names) with ordinality
        as w (kind, parent, uuid, name, at)
      left join unnest(locked_at, locked_id) as l (at, id) on l.at = w.at
      left join resource_providers p on p.id = l.id
      where w.kind = 'create' and (w.parent is null or p.id is not null)
    ), inserted as (
      insert into resource_providers (id, uuid, name, parent_id, root_id) overriding system value
      select new.id, new.uuid, new.name, new.parent_id, coalesce(new.root_id, new.id) from new order by new.uuid
      on conflict do nothing
      returning id, updated_at
    )
    select new.at, coalesce((select r.uuid from resource_providers r where r.id = new.root_id), new.uuid), 0,
      (extract(epoch from inserted.updated_at) * 1000)::float8
    from new join inserted on inserted.id = new.id;
end
$$;
