-- Replaces a provider's aggregates. With an expected generation the generation is raised, even for the same set; without one it stays.
create or replace function placement_set_aggregates(provider_uuid uuid, expected int, wanted uuid[])
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
