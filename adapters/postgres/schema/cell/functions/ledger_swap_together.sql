-- requires: ledger_capacity
-- Replaces the allocations of existing consumers, whatever their generations. Each change of the batch has one step for a consumer of its
-- own, which holds something afterwards, and no provider's generation may have to be raised. All requested amounts must have room before
-- anything is released, so that the order of the changes does not matter. Raises BT002 otherwise, and the caller undoes its writes.
-- Hops claim by this function, in the way of ledger_claim_together: ledger_apply needs some thirty statements for a hop, and spends most of
-- its time on lists that a plain hop does not need.
create or replace function ledger_swap_together(batch ledger_batch) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  b_uuid constant uuid[] := batch.consumers;
  o_project constant text[] := batch.owner_project;
  o_user constant text[] := batch.owner_user;
  o_type constant text[] := batch.owner_type;
  b_provider_uuid constant uuid[] := batch.providers;
  b_class_name constant text[] := batch.classes;
  b_provider constant int[] := batch.inventory_provider;
  b_class constant int[] := batch.inventory_class;
  b_consumer constant int[] := batch.step_consumer;
  b_owner constant int[] := batch.step_owner;
  b_item_end constant int[] := batch.step_item_end;
  b_item_inventory constant int[] := batch.item_inventory;
  b_amount constant bigint[] := batch.item_amount;
  consumer_count constant int := cardinality(b_uuid);
  -- The stored allocations.
  h_provider int[];
  h_class int[];
  h_amount bigint[];
  -- The columns of the batch's n-th inventory.
  i_provider int[];
  i_class int[];
  wanted int;
  written int;
begin
  if true = any (batch.change_bumps) or -1 <> any (batch.step_expected) or 0 <> any (batch.step_move_to) or 0 = any (b_owner)
    or cardinality(b_consumer) <> consumer_count or cardinality(batch.change_step_end) <> consumer_count
  then
    raise exception using errcode = 'BT002';
  end if;

  update consumers r
  set generation = r.generation + 1, project_id = o_project[w.owner], user_id = o_user[w.owner], type = o_type[w.owner],
    updated_at = now()
  from (select b_uuid[u.consumer] as uuid, u.owner from unnest(b_consumer, b_owner) as u (consumer, owner) order by 1) w
  where r.uuid = w.uuid;
  get diagnostics written = row_count;
  if written < consumer_count then
    raise exception using errcode = 'BT002';
  end if;

  with gone as (
    delete from allocations a where a.consumer_uuid = any (b_uuid) returning a.provider_id, a.class_id, a.amount
  )
  select array_agg(gone.provider_id), array_agg(gone.class_id), array_agg(gone.amount)
  into h_provider, h_class, h_amount from gone;

  with demand as materialized (
    select d.provider_id, d.class_id, max(d.inventory) as inventory, coalesce(sum(d.asked), 0)::bigint as asked,
      coalesce(sum(d.held), 0)::bigint as held, min(d.asked) as least, max(d.asked) as most, array_agg(d.asked) as amounts
    from (
      select p.id as provider_id, r.id as class_id, b.inventory, b.amount as asked, null::bigint as held
      from unnest(b_item_inventory, b_amount) as b (inventory, amount)
      join resource_providers p on p.uuid = b_provider_uuid[b_provider[b.inventory]]
      join resource_classes r on r.name = b_class_name[b_class[b.inventory]]
      union all
      select h.provider_id, h.class_id, null, null, h.amount
      from unnest(h_provider, h_class, h_amount) as h (provider_id, class_id, amount)
    ) d
    group by 1, 2 order by 1, 2
  ),
  written_rows as (
    update inventories v set used = v.used + w.asked - w.held
    from demand w
    where v.provider_id = w.provider_id and v.class_id = w.class_id
      and (w.inventory is null or (
        w.least >= v.min_unit and w.most <= v.max_unit
        and v.used + w.asked <= ledger_capacity(v.total, v.reserved, v.allocation_ratio)
        and (v.step_size = 1 or not exists (select from unnest(w.amounts) as a (amount) where a.amount % v.step_size <> 0))
      ))
    returning w.inventory, v.provider_id, v.class_id
  )
  select array_agg(w.provider_id order by w.inventory) filter (where w.inventory is not null),
    array_agg(w.class_id order by w.inventory) filter (where w.inventory is not null), count(*), (select count(*) from demand)
  into i_provider, i_class, written, wanted from written_rows w;
  if written < wanted or cardinality(i_provider) is distinct from cardinality(b_provider) then
    raise exception using errcode = 'BT002';
  end if;

  insert into allocations (consumer_uuid, provider_id, class_id, amount)
  select b_uuid[b_consumer[w.step]], i_provider[b_item_inventory[h.at]], i_class[b_item_inventory[h.at]], b_amount[h.at]
  from unnest(b_item_end) with ordinality as w (item_end, step),
    generate_series(coalesce(b_item_end[w.step - 1], 0) + 1, w.item_end) as h (at);
end
$$;
