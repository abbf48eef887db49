-- requires: ledger_capacity
-- ledger_claim_first for a single claim from a single provider, as a scheduler that waits for each answer sends them. `classes` and `amounts`
-- are the claim's items. Returns false, like ledger_claim_first, when it has claimed nothing.
-- It has parameters of its own and fewer, simpler statements, because for one claim most of the time goes into reading the arguments and into
-- starting the statements: a third of a claim's time in the database.
-- Locks as ledger_apply does. The update locks the provider's inventories in the order of their primary key, since that is the only index of
-- this table, and other ways to read it are switched off.
create or replace function ledger_claim_alone(
  consumer uuid, owner_project text, owner_user text, owner_type text, provider uuid, raises boolean, classes text[], amounts bigint[]
) returns boolean
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
as $$
declare
  its_id int;
  class_ids int[];
  written int;
begin
  insert into consumers (uuid, generation, project_id, user_id, type) values (consumer, 1, owner_project, owner_user, owner_type);
  if raises then
    update resource_providers p set generation = p.generation + 1, updated_at = now() where p.uuid = provider returning p.id into its_id;
  else
    select p.id into its_id from resource_providers p where p.uuid = provider;
  end if;
  -- An unknown class has the id null, so the other ids stay at the places of their amounts.
  class_ids := array(
    select r.id from unnest(classes) with ordinality as w (name, at)
    left join resource_classes r on r.name = w.name order by w.at
  );
  with claimed as (
    update inventories v set used = v.used + amounts[array_position(class_ids, v.class_id)]
    where v.provider_id = its_id and v.class_id = any (class_ids)
      and amounts[array_position(class_ids, v.class_id)] between v.min_unit and v.max_unit
      and amounts[array_position(class_ids, v.class_id)] % v.step_size = 0
      and v.used + amounts[array_position(class_ids, v.class_id)] <= ledger_capacity(v.total, v.reserved, v.allocation_ratio)
    returning v.class_id
  )
  insert into allocations (consumer_uuid, provider_id, class_id, amount)
  select consumer, its_id, c.class_id, amounts[array_position(class_ids, c.class_id)] from claimed c;
  get diagnostics written = row_count;
  if written < cardinality(classes) then
    raise exception using errcode = 'BT002';
  end if;
  return true;
exception when unique_violation or sqlstate 'BT002' then
  return false;
end
$$;
