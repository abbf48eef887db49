-- Replaces a provider's traits. Writing the same set again changes nothing, not even the generation. Further kind: unknown-names.
create or replace function placement_set_traits(provider_uuid uuid, expected int, trait_names text[])
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

  -- Shared locks, because a trait that is being deleted must not be added to a provider.
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
