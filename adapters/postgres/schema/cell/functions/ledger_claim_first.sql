-- requires: ledger_capacity
-- Makes first claims of new consumers that all fit. This is the most frequent request to a busy Placement API, made as cheap as possible.
-- Either it makes all of the claims and returns true, or it makes none and returns false: then a consumer is not new, a name is unknown, or
-- a claim does not fit, and `ledger_apply` finds out which. Nothing is checked before it is written: an inventory without room is not
-- updated, and one row less than expected undoes everything.
-- Locks as ledger_apply does: consumers by UUID, providers by id, inventories by provider_id, class_id. An update locks rows in the order
-- in which the sorted list reaches them.
create or replace function ledger_claim_first(batch ledger_first_claims) returns boolean
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  b_consumers constant uuid[] := batch.consumers;
  b_project constant text[] := batch.owner_project;
  b_user constant text[] := batch.owner_user;
  b_type constant text[] := batch.owner_type;
  b_provider constant int[] := batch.inventory_provider;
  b_class constant int[] := batch.inventory_class;
  provider_ids int[];
  class_ids int[];
  written int;
begin
  insert into consumers (uuid, generation, project_id, user_id, type)
  select w.uuid, 1, b_project[w.owner], b_user[w.owner], b_type[w.owner]
  from unnest(b_consumers, batch.consumer_owner) as w (uuid, owner) order by w.uuid;

  provider_ids := array(
    select p.id from unnest(batch.providers) with ordinality as w (uuid, at)
    join resource_providers p on p.uuid = w.uuid order by w.at
  );
  class_ids := array(
    select r.id from unnest(batch.classes) with ordinality as w (name, at)
    join resource_classes r on r.name = w.name order by w.at
  );
  if cardinality(provider_ids) < cardinality(batch.providers) or cardinality(class_ids) < cardinality(batch.classes) then
    raise exception using errcode = 'BT002';
  end if;

  update resource_providers p set generation = p.generation + w.raises, updated_at = now()
  from (
    select u.id, u.raises from unnest(provider_ids, batch.provider_raises) as u (id, raises) where u.raises > 0 order by u.id
  ) w
  where p.id = w.id;

  update inventories v set used = v.used + w.demand
  from (
    select provider_ids[u.provider] as provider_id, class_ids[u.class] as class_id, u.demand, u.least, u.most, u.unit
    from unnest(b_provider, b_class, batch.inventory_demand, batch.inventory_least, batch.inventory_most,
      batch.inventory_unit) as u (provider, class, demand, least, most, unit)
    order by 1, 2
  ) w
  where v.provider_id = w.provider_id and v.class_id = w.class_id
    and w.least >= v.min_unit and w.most <= v.max_unit and w.unit % v.step_size = 0
    and v.used + w.demand <= ledger_capacity(v.total, v.reserved, v.allocation_ratio);
  get diagnostics written = row_count;
  if written < cardinality(b_provider) then
    raise exception using errcode = 'BT002';
  end if;

  insert into allocations (consumer_uuid, provider_id, class_id, amount)
  select b_consumers[w.consumer], provider_ids[b_provider[w.inventory]], class_ids[b_class[w.inventory]], w.amount
  from unnest(batch.item_consumer, batch.item_inventory, batch.item_amount) as w (consumer, inventory, amount);
  return true;
exception when unique_violation or sqlstate 'BT002' then
  return false;
end
$$;
