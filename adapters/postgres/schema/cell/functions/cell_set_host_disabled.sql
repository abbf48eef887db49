-- Disables or enables a host for new servers: its row and its root's trait COMPUTE_STATUS_DISABLED together. False when there is no such
-- host.
create or replace function cell_set_host_disabled(host text, wanted boolean, reason text) returns boolean
  language plpgsql
as $$
declare
  root uuid;
  found_id int;
  disabled_trait int;
begin
  perform pg_advisory_xact_lock(7236418052);
  update hosts h set disabled = wanted, disabled_reason = reason, updated_at = now()
  where h.name = host returning h.root_provider into root;
  if not found then
    return false;
  end if;
  select p.id into found_id from resource_providers p where p.uuid = root for no key update;
  if not found then
    return true;
  end if;
  insert into traits (name) values ('COMPUTE_STATUS_DISABLED') on conflict do nothing;
  select t.id into disabled_trait from traits t where t.name = 'COMPUTE_STATUS_DISABLED';
  if wanted then
    insert into provider_traits (provider_id, trait_id) values (found_id, disabled_trait) on conflict do nothing;
  else
    delete from provider_traits q where q.provider_id = found_id and q.trait_id = disabled_trait;
  end if;
  if found then
    update resource_providers p set generation = p.generation + 1, updated_at = now() where p.id = found_id;
  end if;
  return true;
end
$$;
