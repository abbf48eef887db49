-- requires: ledger_shortfalls, ledger_unknown_name
-- The third part of ledger_apply: decides the changes one after the other, in memory. It neither reads nor writes a table.
create or replace function ledger_decide(batch ledger_batch, held ledger_rows) returns ledger_verdicts
  language plpgsql
as $$
declare
  absent constant int := -2;
  anything constant int := -1;
  b_uuid constant uuid[] := batch.consumers;
  b_change_end constant int[] := batch.change_step_end;
  b_consumer constant int[] := batch.step_consumer;
  b_expected constant int[] := batch.step_expected;
  b_move_to constant int[] := batch.step_move_to;
  b_owner constant int[] := batch.step_owner;
  b_item_end constant int[] := batch.step_item_end;
  b_inventory constant int[] := batch.item_inventory;
  place_named constant int[] := held.place_named;
  names_unknown constant boolean := 0 = any (place_named);
  capacity constant bigint[] := held.capacity;
  min_unit constant int[] := held.min_unit;
  max_unit constant int[] := held.max_unit;
  step_size constant int[] := held.step_size;
  used bigint[] := held.used;
  h_amount constant bigint[] := held.holding_amount;
  h_place int[] := array_fill(0, array[cardinality(b_inventory)]) || held.place_stored;
  -- Consumers after the changes so far.
  c_generation int[] := held.generation;
  c_owner int[] := held.owner;
  c_type int[] := held.owner;
  c_from int[] := held.holding_from;
  c_to int[] := held.holding_to;
  -- The values that each step has overwritten, to undo it.
  p_generation int[];
  p_owner int[];
  p_type int[];
  p_from int[];
  p_to int[];
  kinds text[] := array_fill('committed'::text, array[cardinality(b_change_end)]);
  details jsonb[] := array_fill(null::jsonb, array[cardinality(b_change_end)]);
  generations int[] := '{}';
  generations_end int[];
  why jsonb;
  suspect boolean;
  first_step int;
  next_step int := 1;
  next_item int := 1;
  i int;
  k int;
  n int;
  amount bigint;
begin
  for c in 1..cardinality(b_change_end) loop
    first_step := next_step;
    why := null;
    suspect := false;
    for s in first_step..b_change_end[c] loop
      i := b_consumer[s];
      n := b_move_to[s];
      if n > 0 and c_generation[i] = absent then
        why := jsonb_build_object('kind', 'consumer-conflict', 'consumer', b_uuid[i], 'expected', 'any', 'actual', null);
      elsif n > 0 and c_generation[n] <> absent then
        why := jsonb_build_object('kind', 'consumer-conflict', 'consumer', b_uuid[n], 'expected', null, 'actual', c_generation[n]);
      elsif n = 0 and b_expected[s] <> anything and b_expected[s] <> c_generation[i] then
        why := jsonb_build_object('kind', 'consumer-conflict', 'consumer', b_uuid[i],
          'expected', nullif(b_expected[s], absent), 'actual', nullif(c_generation[i], absent));
      elsif names_unknown then
        why := ledger_unknown_name(next_item, b_item_end[s], b_inventory, place_named, batch.inventory_provider,
          batch.inventory_class, batch.providers, batch.classes, held.provider_id);
      end if;
      exit when why is not null;
      p_generation[s] := c_generation[i];
      p_owner[s] := c_owner[i];
      p_type[s] := c_type[i];
      p_from[s] := c_from[i];
      p_to[s] := c_to[i];
      next_step := s + 1;
      if n > 0 then
        c_generation[n] := 1;
        c_owner[n] := c_owner[i];
        c_type[n] := b_owner[s];
        c_from[n] := c_from[i];
        c_to[n] := c_to[i];
      else
        for x in c_from[i]..c_to[i] loop
          used[h_place[x]] := used[h_place[x]] - h_amount[x];
        end loop;
        for x in next_item..b_item_end[s] loop
          k := place_named[b_inventory[x]];
          amount := h_amount[x];
          h_place[x] := k;
          used[k] := used[k] + amount;
          suspect := suspect or used[k] > capacity[k] or amount < min_unit[k] or amount > max_unit[k] or amount % step_size[k] <> 0;
        end loop;
      end if;
      if n > 0 or b_item_end[s] < next_item then
        c_generation[i] := absent;
        c_to[i] := 0;
      else
        c_generation[i] := greatest(c_generation[i], 0) + 1;
        c_owner[i] := b_owner[s];
        c_type[i] := b_owner[s];
        c_from[i] := next_item;
        c_to[i] := b_item_end[s];
        next_item := b_item_end[s] + 1;
      end if;
    end loop;

    -- Compares in full where a change may exceed its capacity: a later step may have released resources, or the use did not grow.
    if suspect and why is null then
      why := ledger_shortfalls(coalesce(b_item_end[first_step - 1], 0) + 1, next_item - 1, first_step, next_step - 1, b_move_to,
        p_from, p_to, h_place, h_amount, used, capacity, min_unit, max_unit, step_size, b_inventory,
        batch.inventory_provider, batch.inventory_class, batch.providers, batch.classes);
    end if;
    if why is null then
      for s in first_step..next_step - 1 loop
        generations[cardinality(generations) + 1] := greatest(c_generation[b_consumer[s]], 0);
        if b_move_to[s] > 0 then
          generations[cardinality(generations) + 1] := greatest(c_generation[b_move_to[s]], 0);
        end if;
      end loop;
    else
      kinds[c] := why ->> 'kind';
      details[c] := why - 'kind';
      for s in reverse next_step - 1..first_step loop
        i := b_consumer[s];
        n := b_move_to[s];
        if n > 0 then
          c_generation[n] := absent;
          c_to[n] := 0;
        else
          for x in coalesce(b_item_end[s - 1], 0) + 1..b_item_end[s] loop
            used[h_place[x]] := used[h_place[x]] - h_amount[x];
          end loop;
          for x in p_from[s]..p_to[s] loop
            used[h_place[x]] := used[h_place[x]] + h_amount[x];
          end loop;
        end if;
        c_generation[i] := p_generation[s];
        c_owner[i] := p_owner[s];
        c_type[i] := p_type[s];
        c_from[i] := p_from[s];
        c_to[i] := p_to[s];
      end loop;
      next_item := coalesce(b_item_end[b_change_end[c]], 0) + 1;
    end if;
    next_step := b_change_end[c] + 1;
    generations_end[c] := cardinality(generations);
  end loop;
  return row(kinds, details, generations, generations_end, c_generation, c_owner, c_type, c_from, c_to, used, h_place, p_from, p_to);
end
$$;
