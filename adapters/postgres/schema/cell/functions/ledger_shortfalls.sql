-- Every shortfall of the change of these items and steps, item by item, with `used` as it would be after the change. Null when the change
-- fits. An inventory that already exceeds its capacity accepts a change that does not raise its use.
-- Cost: proportional to the batch's inventories and to the items that the change names and releases.
create or replace function ledger_shortfalls(
  first_item int, last_item int, first_step int, last_step int, step_move_to int[], step_held_from int[], step_held_to int[],
  holding_place int[], holding_amount bigint[], used bigint[], capacity bigint[], min_unit int[], max_unit int[], step_size int[],
  item_inventory int[], inventory_provider int[], inventory_class int[], providers uuid[], classes text[]
)
  returns jsonb
  language plpgsql immutable
as $$
declare
  -- For each inventory: the first item that names it (0 for none), the amount that the items request, and the amount that the steps
  -- release.
  first_named int[] := array_fill(0, array[cardinality(used)]);
  requested bigint[] := array_fill(0::bigint, array[cardinality(used)]);
  given_back bigint[] := array_fill(0::bigint, array[cardinality(used)]);
  shortfalls jsonb[] := '{}';
  exceeds boolean;
  what jsonb;
  amount bigint;
  k int;
begin
  for x in first_item..last_item loop
    k := holding_place[x];
    requested[k] := requested[k] + holding_amount[x];
    if first_named[k] = 0 then
      first_named[k] := x;
    end if;
  end loop;
  for s in first_step..last_step loop
    if step_move_to[s] = 0 then
      for x in step_held_from[s]..step_held_to[s] loop
        k := holding_place[x];
        given_back[k] := given_back[k] + holding_amount[x];
      end loop;
    end if;
  end loop;
  for x in first_item..last_item loop
    k := holding_place[x];
    amount := holding_amount[x];
    exceeds := first_named[k] = x and requested[k] > given_back[k] and used[k] > capacity[k];
    if exceeds or amount < min_unit[k] or amount > max_unit[k] or amount % step_size[k] <> 0 then
      what := jsonb_build_object(
        'provider', providers[inventory_provider[item_inventory[x]]],
        'resourceClass', classes[inventory_class[item_inventory[x]]],
        'requested', amount, 'used', greatest(0, used[k] - requested[k]));
      if amount < min_unit[k] then
        shortfalls := shortfalls || (what || jsonb_build_object('reason', 'min_unit', 'limit', min_unit[k]));
      end if;
      if amount > max_unit[k] then
        shortfalls := shortfalls || (what || jsonb_build_object('reason', 'max_unit', 'limit', max_unit[k]));
      end if;
      if amount % step_size[k] <> 0 then
        shortfalls := shortfalls || (what || jsonb_build_object('reason', 'step_size', 'limit', step_size[k]));
      end if;
      if exceeds then
        shortfalls := shortfalls
          || (what || jsonb_build_object('reason', 'capacity', 'requested', requested[k], 'limit', capacity[k]));
      end if;
    end if;
  end loop;
  return case when shortfalls <> '{}' then jsonb_build_object('kind', 'no-capacity', 'shortfalls', to_jsonb(shortfalls)) end;
end
$$;
