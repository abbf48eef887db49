-- requires: ledger_capacity
-- Makes all claims of the batch. Each must be the first claim of a new consumer, they must all fit together, and no provider's generation
-- may have to be raised. Raises unique_violation or BT002 otherwise, and the caller undoes its writes.
-- Every boot claims by this function. It writes at once, under conditions, in one pass that locks as it writes, instead of locking and
-- checking first. One row less than expected undoes everything (BT002, caught where it began), and ledger_apply then finds the refused
-- changes and the reasons. Each saved row lock is a record of the log less, which every follower would decode.
-- Lock order as everywhere: an update or delete that is joined to a sorted list locks in the order of the list, because these plans (nested
-- loops, index look-ups) process it in that order. If such an update finds a changed row, it checks the newest version again.
create or replace function ledger_claim_together(batch ledger_batch) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  -- Fields of the batch are extracted once here, because within a statement they would be extracted for each row.
  b_uuid constant uuid[] := batch.consumers;
  b_owner constant int[] := batch.consumer_owner;
  o_project constant text[] := batch.owner_project;
  o_user constant text[] := batch.owner_user;
  o_type constant text[] := batch.owner_type;
  b_provider_uuid constant uuid[] := batch.providers;
  b_class_name constant text[] := batch.classes;
  b_provider constant int[] := batch.inventory_provider;
  b_class constant int[] := batch.inventory_class;
  b_consumer constant int[] := batch.step_consumer;
  b_item_end constant int[] := batch.step_item_end;
  b_item_inventory constant int[] := batch.item_inventory;
  b_amount constant bigint[] := batch.item_amount;
  consumer_count constant int := cardinality(b_uuid);
  provider_ids int[];
  class_ids int[];
  -- The columns of the batch's n-th inventory.
  i_provider int[];
  i_class int[];
begin
  if true = any (batch.change_bumps) or 0 <= any (batch.step_expected) or 0 = any (b_owner)
    or cardinality(b_consumer) <> consumer_count or cardinality(batch.change_step_end) <> consumer_count
  then
    raise exception using errcode = 'BT002';
  end if;

  insert into consumers (uuid, generation, project_id, user_id, type)
  select w.uuid, 1, o_project[w.owner], o_user[w.owner], o_type[w.owner]
  from unnest(b_uuid, b_owner) as w (uuid, owner)
  order by w.uuid;

  provider_ids := array(
    select p.id from unnest(b_provider_uuid) with ordinality as w (uuid, at)
    left join resource_providers p on p.uuid = w.uuid order by w.at
  );
  class_ids := array(
    select r.id from unnest(b_class_name) with ordinality as w (name, at)
    left join resource_classes r on r.name = w.name order by w.at
  );
  with written as (
    update inventories v set used = v.used + w.demand
    from (
      select provider_ids[b_provider[b.inventory]] as provider_id, class_ids[b_class[b.inventory]] as class_id, b.inventory,
        sum(b.amount)::bigint as demand, min(b.amount) as least, max(b.amount) as most, array_agg(b.amount) as amounts
      from unnest(b_item_inventory, b_amount) as b (inventory, amount) group by b.inventory order by 1, 2
    ) w
    where v.provider_id = w.provider_id and v.class_id = w.class_id
      and w.least >= v.min_unit and w.most <= v.max_unit
      and v.used + w.demand <= ledger_capacity(v.total, v.reserved, v.allocation_ratio)
      and (v.step_size = 1 or not exists (select from unnest(w.amounts) as a (amount) where a.amount % v.step_size <> 0))
    returning w.inventory, v.provider_id, v.class_id
  )
  select array_agg(written.provider_id order by written.inventory), array_agg(written.class_id order by written.inventory)
  into i_provider, i_class from written;
  if cardinality(i_provider) is distinct from cardinality(b_provider) then
    raise exception using errcode = 'BT002';
  end if;

  insert into allocations (consumer_uuid, provider_id, class_id, amount)
  select b_uuid[b_consumer[w.step]], i_provider[b_item_inventory[h.at]], i_class[b_item_inventory[h.at]], b_amount[h.at]
  from unnest(b_item_end) with ordinality as w (item_end, step),
    generate_series(coalesce(b_item_end[w.step - 1], 0) + 1, w.item_end) as h (at);
end
$$;
