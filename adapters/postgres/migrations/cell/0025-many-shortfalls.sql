-- ledger_apply as before, but that the cost of telling what a change lacks grows with its items, no longer with their square: for
-- some thousand consumers in one request, all locks held meanwhile, that was a minute.
create or replace function ledger_apply(batch ledger_batch)
  returns table (change int, kind text, generations int[], detail jsonb)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  absent constant int := -2;
  anything constant int := -1;

  -- The batch.
  b_uuid constant uuid[] := batch.consumers;
  b_owner constant int[] := batch.consumer_owner;
  b_change_end constant int[] := batch.change_step_end;
  b_bumps constant boolean[] := batch.change_bumps;
  b_consumer constant int[] := batch.step_consumer;
  b_expected constant int[] := batch.step_expected;
  b_move_to constant int[] := batch.step_move_to;
  b_step_owner constant int[] := batch.step_owner;
  b_item_end constant int[] := batch.step_item_end;
  b_item_inventory constant int[] := batch.item_inventory;
  b_provider_uuid constant uuid[] := batch.providers;
  b_class_name constant text[] := batch.classes;
  b_provider constant int[] := batch.inventory_provider;
  b_class constant int[] := batch.inventory_class;
  consumer_count constant int := cardinality(batch.consumers);
  change_count constant int := cardinality(batch.change_step_end);
  item_count constant int := cardinality(batch.item_inventory);
  provider_ids int[];
  class_ids int[];

  -- Owners: the batch's, then those of consumers that exist, then those that moves make.
  o_project text[] := batch.owner_project;
  o_user text[] := batch.owner_user;
  o_type text[] := batch.owner_type;

  -- Consumers by their index in the batch, as stored (s_) and as the changes so far leave them (c_). What one holds is a
  -- range lo..hi of the holdings t_: the batch's items, then the stored allocations.
  s_gen int[];
  s_own int[];
  s_lo int[] := array_fill(1, array[consumer_count]);
  s_hi int[] := array_fill(0, array[consumer_count]);
  c_gen int[];
  c_own int[];
  c_lo int[];
  c_hi int[];
  t_inv int[];
  t_amount bigint[];

  -- Locked inventories by their place in lock order; inv_at and hold_at: the place of the batch's n-th inventory (0: there
  -- is none) and of the n-th stored allocation's. l_: what to lock, by source: n, or -n for the n-th stored allocation.
  l_provider int[];
  l_class int[];
  l_source int[];
  i_source int[];
  i_provider int[];
  i_class int[];
  i_stored bigint[];
  i_used bigint[];
  i_wanted bigint[];
  i_capacity bigint[];
  i_min int[];
  i_max int[];
  i_step int[];
  -- Where the row is; it cannot move while it is locked, and saves the write a look-up.
  i_row tid[];
  inv_at int[];
  hold_at int[];

  -- Consumers as their rows were found.
  created uuid[];
  found_at int[] := '{}';
  h_consumer int[];
  h_provider int[] := '{}';
  h_class int[] := '{}';
  h_amount bigint[];

  -- What each step overwrote, to undo it.
  p_gen int[];
  p_own int[];
  p_lo int[];
  p_hi int[];

  -- Answers.
  r_kind text[] := array_fill('committed'::text, array[change_count]);
  r_detail jsonb[] := array_fill(null::jsonb, array[change_count]);
  g_flat int[] := '{}';
  g_end int[];
  g_count int := 0;

  -- Writes.
  w_gone uuid[] := '{}';
  w_changed int[] := '{}';
  w_cleared uuid[] := '{}';
  w_holding int[] := '{}';
  bump_provider int[] := '{}';
  bump_change int[] := '{}';

  refusal text;
  why jsonb;
  suspect boolean;
  fits boolean;
  -- Of the change at hand, by inventory: the first item that names it (0: none), what its items ask and what its steps give back.
  d_first int[];
  d_requested bigint[];
  d_given_back bigint[];
  exceeds boolean;
  shortfalls jsonb[];
  found record;
  first_step int;
  first_item int;
  last_item int;
  gen int;
  expected int;
  amount bigint;
  next_step int := 1;
  next_item int := 1;
  i int;
  k int;
  n int;
  x int;
begin
  -- 1. Consumers: create or lock every one, in one ascending pass (`do update ... where false` locks and writes nothing).
  with inserted as (
    insert into consumers as r (uuid, generation, project_id, user_id, type)
    select w.uuid, (w.owner > 0)::int, coalesce(o_project[w.owner], ''), coalesce(o_user[w.owner], ''),
      coalesce(o_type[w.owner], '')
    from unnest(b_uuid, b_owner) as w (uuid, owner)
    order by w.uuid
    on conflict (uuid) do update set generation = r.generation where false
    returning r.uuid
  )
  select coalesce(array_agg(inserted.uuid), '{}') into created from inserted;
  s_own := b_owner;
  s_gen := array(select (w.owner > 0)::int from unnest(b_owner) with ordinality as w (owner, at) order by w.at);
  if cardinality(created) < consumer_count then
    -- Both lists ascend: one pass parts what was created from what was there.
    n := 1;
    for i in 1..consumer_count loop
      if b_uuid[i] = created[n] then
        n := n + 1;
      else
        found_at := found_at || i;
      end if;
    end loop;
    if n <= cardinality(created) then
      raise exception 'consumers of a batch must ascend: %', b_uuid using errcode = 'invalid_parameter_value';
    end if;
  end if;
  if cardinality(found_at) > 0 then
    for found in
      select w.at, r.generation, r.project_id, r.user_id, r.type
      from unnest(found_at) as w (at) join consumers r on r.uuid = b_uuid[w.at]
    loop
      i := found.at;
      o_project := o_project || found.project_id;
      o_user := o_user || found.user_id;
      o_type := o_type || found.type;
      s_gen[i] := found.generation;
      s_own[i] := cardinality(o_type);
    end loop;
  end if;
  c_own := s_own;
  -- A consumer that this transaction created does not exist for the first step that names it.
  c_gen := array_fill(absent, array[consumer_count]);
  foreach i in array found_at loop
    c_gen[i] := s_gen[i];
  end loop;

  -- 2. What the consumers that exist already hold.
  t_amount := batch.item_amount;
  if cardinality(found_at) > 0 then
    select array_agg(h.at), array_agg(h.provider_id), array_agg(h.class_id), array_agg(h.amount)
    into h_consumer, h_provider, h_class, h_amount
    from (
      select w.at, a.provider_id, a.class_id, a.amount
      from unnest(found_at) as w (at) join allocations a on a.consumer_uuid = b_uuid[w.at]
      order by w.at, a.provider_id, a.class_id
    ) h;
    h_consumer := coalesce(h_consumer, '{}');
    h_provider := coalesce(h_provider, '{}');
    h_class := coalesce(h_class, '{}');
    t_amount := t_amount || coalesce(h_amount, '{}');
    for x in 1..cardinality(h_consumer) loop
      i := h_consumer[x];
      if s_hi[i] = 0 then
        s_lo[i] := item_count + x;
      end if;
      s_hi[i] := item_count + x;
    end loop;
  end if;
  c_lo := s_lo;
  c_hi := s_hi;

  -- 3. Names, then locks: providers if a generation may rise, inventories.
  provider_ids := array(
    select p.id from unnest(batch.providers) with ordinality as w (uuid, at)
    left join resource_providers p on p.uuid = w.uuid order by w.at
  );
  class_ids := array(
    select r.id from unnest(batch.classes) with ordinality as w (name, at)
    left join resource_classes r on r.name = w.name order by w.at
  );
  if true = any (b_bumps) then
    perform 1 from resource_providers p where p.id = any (provider_ids || h_provider) order by p.id for no key update;
  end if;
  select array_agg(provider_ids[b.provider] order by b.at), array_agg(class_ids[b.class] order by b.at), array_agg(b.at)
  into l_provider, l_class, l_source
  from unnest(batch.inventory_provider, batch.inventory_class) with ordinality as b (provider, class, at);
  if cardinality(h_provider) > 0 then
    l_provider := l_provider || h_provider;
    l_class := l_class || h_class;
    l_source := l_source || array(select generate_series(-1, -cardinality(h_provider), -1));
  end if;
  -- A plain join with one function: what comes back after a wait for a lock is evaluated anew row by row, and over a
  -- union that would answer with another row of the same inventory.
  select array_agg(l.source), array_agg(l.provider_id), array_agg(l.class_id), array_agg(l.used),
    array_agg(l.capacity), array_agg(l.min_unit), array_agg(l.max_unit), array_agg(l.step_size), array_agg(l.row)
  into i_source, i_provider, i_class, i_used, i_capacity, i_min, i_max, i_step, i_row
  from (
    select w.source, v.provider_id, v.class_id, v.used,
      ledger_capacity(v.total, v.reserved, v.allocation_ratio) as capacity, v.min_unit, v.max_unit, v.step_size,
      v.ctid as row
    from unnest(l_provider, l_class, l_source) as w (provider_id, class_id, source)
    join inventories v on v.provider_id = w.provider_id and v.class_id = w.class_id
    order by v.provider_id, v.class_id
    for update of v
  ) l;
  i_stored := i_used;

  -- 4. The short way, for what a busy ledger is asked most: nothing but first claims that fit together.
  -- One step a change, each for a consumer of its own that did not exist and may be new.
  if cardinality(found_at) = 0 and not 0 = any (b_owner) and consumer_count = cardinality(b_consumer)
    and b_change_end = array(select generate_series(1, consumer_count)) and 0 > all (b_expected)
    and cardinality(i_source) = cardinality(batch.inventory_provider)
  then
    inv_at := array(select w.at from unnest(i_source) with ordinality as w (source, at) order by w.source);
    select array_agg(i_stored[d.at] + d.demand order by d.at),
      bool_and(d.lawful and i_stored[d.at] + d.demand <= i_capacity[d.at])
    into i_wanted, fits
    from (
      select w.at, sum(w.amount)::bigint as demand,
        bool_and(w.amount between i_min[w.at] and i_max[w.at] and w.amount % i_step[w.at] = 0) as lawful
      from (
        select inv_at[b.inventory] as at, b.amount from unnest(b_item_inventory, t_amount) as b (inventory, amount)
      ) w
      group by w.at
    ) d;
    if fits then
      insert into allocations (consumer_uuid, provider_id, class_id, amount)
      select b_uuid[w.consumer], i_provider[inv_at[b_item_inventory[h.at]]], i_class[inv_at[b_item_inventory[h.at]]],
        t_amount[h.at]
      from unnest(b_consumer, b_item_end) with ordinality as w (consumer, item_end, step),
        generate_series(coalesce(b_item_end[w.step - 1], 0) + 1, w.item_end) as h (at);
      update inventories v set used = w.used from unnest(i_row, i_wanted) as w (row, used) where v.ctid = w.row;
      get diagnostics n = row_count;
      if n <> cardinality(i_row) then
        raise exception 'wrote % of % inventories', n, cardinality(i_row) using errcode = 'data_corrupted';
      end if;
      if true = any (b_bumps) then
        update resource_providers p set generation = p.generation + b.times, updated_at = now()
        from (
          select i_provider[inv_at[b_item_inventory[h.at]]] as id, count(distinct w.change)::int as times
          from unnest(b_bumps, b_item_end) with ordinality as w (bumps, item_end, change),
            generate_series(coalesce(b_item_end[w.change - 1], 0) + 1, w.item_end) as h (at)
          where w.bumps group by 1
        ) b
        where p.id = b.id;
      end if;
      return query select r.at, 'committed', '{1}'::int[], null::jsonb from generate_series(1, change_count) as r (at);
      return;
    end if;
  end if;

  -- An inventory that is both named and held comes twice in a row; the first place counts.
  inv_at := array_fill(0, array[cardinality(batch.inventory_provider)]);
  hold_at := array_fill(0, array[cardinality(h_provider)]);
  for x in 1..coalesce(cardinality(i_source), 0) loop
    if x = 1 or i_provider[x] <> i_provider[k] or i_class[x] <> i_class[k] then
      k := x;
    end if;
    if i_source[x] > 0 then
      inv_at[i_source[x]] := k;
    else
      hold_at[-i_source[x]] := k;
    end if;
  end loop;
  if 0 = any (hold_at) then
    raise exception 'consumers % hold what no inventory has', b_uuid using errcode = 'data_corrupted';
  end if;
  t_inv := array_fill(0, array[item_count]) || hold_at;

  -- 5. Decide, one change after the other. No statement in here reads or writes a table.
  for c in 1..change_count loop
    first_step := next_step;
    first_item := next_item;
    refusal := null;
    suspect := false;
    for s in first_step..b_change_end[c] loop
      i := b_consumer[s];
      gen := c_gen[i];
      if b_move_to[s] > 0 then
        n := b_move_to[s];
        if gen = absent then
          refusal := 'consumer-conflict';
          why := jsonb_build_object('consumer', b_uuid[i], 'expected', 'any', 'actual', null);
          exit;
        elsif c_gen[n] <> absent then
          refusal := 'consumer-conflict';
          why := jsonb_build_object('consumer', b_uuid[n], 'expected', null, 'actual', c_gen[n]);
          exit;
        end if;
        o_project := o_project || o_project[c_own[i]];
        o_user := o_user || o_user[c_own[i]];
        o_type := o_type || o_type[b_step_owner[s]];
        c_gen[n] := 1;
        c_own[n] := cardinality(o_type);
        c_lo[n] := c_lo[i];
        c_hi[n] := c_hi[i];
        p_gen[s] := gen;
        p_own[s] := c_own[i];
        p_lo[s] := c_lo[i];
        p_hi[s] := c_hi[i];
        c_gen[i] := absent;
        c_lo[i] := 1;
        c_hi[i] := 0;
      else
        expected := b_expected[s];
        if expected <> anything and expected <> gen then
          refusal := 'consumer-conflict';
          why := jsonb_build_object('consumer', b_uuid[i],
            'expected', nullif(expected, absent), 'actual', nullif(gen, absent));
          exit;
        end if;
        last_item := b_item_end[s];
        for j in next_item..last_item loop
          k := inv_at[b_item_inventory[j]];
          if k = 0 then
            -- Undo the part of this step that is done; `first_item..next_item - 1` is undone with the whole steps.
            for x in next_item..j - 1 loop
              i_used[t_inv[x]] := i_used[t_inv[x]] - t_amount[x];
            end loop;
            x := batch.inventory_provider[b_item_inventory[j]];
            why := jsonb_build_object('provider', batch.providers[x]);
            if provider_ids[x] is null then
              refusal := 'unknown-provider';
            else
              refusal := 'unknown-inventory';
              why := why || jsonb_build_object('resourceClass',
                batch.classes[batch.inventory_class[b_item_inventory[j]]]);
            end if;
            exit;
          end if;
          t_inv[j] := k;
          amount := t_amount[j];
          i_used[k] := i_used[k] + amount;
          if i_used[k] > i_capacity[k] or amount < i_min[k] or amount > i_max[k] or amount % i_step[k] <> 0 then
            suspect := true;
          end if;
        end loop;
        exit when refusal is not null;
        for x in c_lo[i]..c_hi[i] loop
          i_used[t_inv[x]] := i_used[t_inv[x]] - t_amount[x];
        end loop;
        p_gen[s] := gen;
        p_own[s] := c_own[i];
        p_lo[s] := c_lo[i];
        p_hi[s] := c_hi[i];
        if last_item < next_item then
          c_gen[i] := absent;
          c_lo[i] := 1;
          c_hi[i] := 0;
        else
          c_gen[i] := case when gen = absent then 1 else gen + 1 end;
          c_own[i] := b_step_owner[s];
          c_lo[i] := next_item;
          c_hi[i] := last_item;
        end if;
        next_item := last_item + 1;
      end if;
      next_step := s + 1;
    end loop;

    -- Compare in full where something may be too much; a later step may have given it back, or it did not grow.
    if suspect and refusal is null then
      d_first := array_fill(0, array[cardinality(i_used)]);
      d_requested := array_fill(0::bigint, array[cardinality(i_used)]);
      d_given_back := array_fill(0::bigint, array[cardinality(i_used)]);
      for x in first_item..next_item - 1 loop
        k := t_inv[x];
        d_requested[k] := d_requested[k] + t_amount[x];
        if d_first[k] = 0 then
          d_first[k] := x;
        end if;
      end loop;
      for s in first_step..next_step - 1 loop
        if b_move_to[s] = 0 then
          for x in p_lo[s]..p_hi[s] loop
            k := t_inv[x];
            d_given_back[k] := d_given_back[k] + t_amount[x];
          end loop;
        end if;
      end loop;
      shortfalls := '{}';
      for j in first_item..next_item - 1 loop
        k := t_inv[j];
        amount := t_amount[j];
        exceeds := d_first[k] = j and d_requested[k] > d_given_back[k] and i_used[k] > i_capacity[k];
        if exceeds or amount < i_min[k] or amount > i_max[k] or amount % i_step[k] <> 0 then
          why := jsonb_build_object(
            'provider', b_provider_uuid[b_provider[b_item_inventory[j]]],
            'resourceClass', b_class_name[b_class[b_item_inventory[j]]],
            'requested', amount, 'used', greatest(0, i_used[k] - d_requested[k]));
          if amount < i_min[k] then
            shortfalls := shortfalls || (why || jsonb_build_object('reason', 'min_unit', 'limit', i_min[k]));
          end if;
          if amount > i_max[k] then
            shortfalls := shortfalls || (why || jsonb_build_object('reason', 'max_unit', 'limit', i_max[k]));
          end if;
          if amount % i_step[k] <> 0 then
            shortfalls := shortfalls || (why || jsonb_build_object('reason', 'step_size', 'limit', i_step[k]));
          end if;
          if exceeds then
            shortfalls := shortfalls
              || (why || jsonb_build_object('reason', 'capacity', 'requested', d_requested[k], 'limit', i_capacity[k]));
          end if;
        end if;
      end loop;
      if shortfalls <> '{}' then
        refusal := 'no-capacity';
        why := jsonb_build_object('shortfalls', to_jsonb(shortfalls));
      end if;
    end if;

    if refusal is null then
      for s in first_step..next_step - 1 loop
        g_count := g_count + 1;
        g_flat[g_count] := greatest(c_gen[b_consumer[s]], 0);
        if b_move_to[s] > 0 then
          g_count := g_count + 1;
          g_flat[g_count] := greatest(c_gen[b_move_to[s]], 0);
        elsif b_bumps[c] and b_step_owner[s] = 0 then
          -- It gave back all: what it held counts. Else what it claims does, below.
          for x in p_lo[s]..p_hi[s] loop
            bump_provider := bump_provider || i_provider[t_inv[x]];
            bump_change := bump_change || c;
          end loop;
        end if;
      end loop;
      if b_bumps[c] then
        for x in first_item..next_item - 1 loop
          bump_provider := bump_provider || i_provider[t_inv[x]];
          bump_change := bump_change || c;
        end loop;
      end if;
    else
      r_kind[c] := refusal;
      r_detail[c] := why;
      for s in reverse next_step - 1..first_step loop
        i := b_consumer[s];
        if b_move_to[s] > 0 then
          c_gen[b_move_to[s]] := absent;
          c_lo[b_move_to[s]] := 1;
          c_hi[b_move_to[s]] := 0;
        else
          for x in coalesce(b_item_end[s - 1], 0) + 1..b_item_end[s] loop
            i_used[t_inv[x]] := i_used[t_inv[x]] - t_amount[x];
          end loop;
          for x in p_lo[s]..p_hi[s] loop
            i_used[t_inv[x]] := i_used[t_inv[x]] + t_amount[x];
          end loop;
        end if;
        c_gen[i] := p_gen[s];
        c_own[i] := p_own[s];
        c_lo[i] := p_lo[s];
        c_hi[i] := p_hi[s];
      end loop;
      next_item := coalesce(b_item_end[b_change_end[c]], 0) + 1;
    end if;
    next_step := b_change_end[c] + 1;
    g_end[c] := g_count;
  end loop;

  -- 6. Write what differs.
  for i in 1..consumer_count loop
    if c_gen[i] = absent then
      w_gone := w_gone || b_uuid[i];
    elsif c_gen[i] <> s_gen[i] or c_own[i] <> s_own[i] then
      w_changed := w_changed || i;
    end if;
    if c_lo[i] <> s_lo[i] or c_hi[i] <> s_hi[i] then
      if s_hi[i] > 0 then
        w_cleared := w_cleared || b_uuid[i];
      end if;
      if c_hi[i] > 0 then
        w_holding := w_holding || i;
      end if;
    end if;
  end loop;
  if cardinality(w_gone) > 0 then
    delete from consumers r where r.uuid = any (w_gone);
  end if;
  if cardinality(w_changed) > 0 then
    update consumers r
    set generation = c_gen[w.at], project_id = o_project[c_own[w.at]], user_id = o_user[c_own[w.at]],
      type = o_type[c_own[w.at]], updated_at = now()
    from unnest(w_changed) as w (at)
    where r.uuid = b_uuid[w.at];
  end if;
  if cardinality(w_cleared) > 0 then
    delete from allocations a where a.consumer_uuid = any (w_cleared);
  end if;
  if cardinality(w_holding) > 0 then
    insert into allocations (consumer_uuid, provider_id, class_id, amount)
    select b_uuid[w.at], i_provider[t_inv[h.at]], i_class[t_inv[h.at]], t_amount[h.at]
    from unnest(w_holding) as w (at), generate_series(c_lo[w.at], c_hi[w.at]) as h (at);
  end if;
  update inventories v set used = w.used
  from unnest(i_row, i_used, i_stored) as w (row, used, stored)
  where w.used <> w.stored and v.ctid = w.row;
  get diagnostics n = row_count;
  if n <> (select count(*) from unnest(i_used, i_stored) as w (used, stored) where w.used <> w.stored) then
    raise exception 'wrote only % inventories', n using errcode = 'data_corrupted';
  end if;
  if cardinality(bump_provider) > 0 then
    update resource_providers p set generation = p.generation + w.times, updated_at = now()
    from (
      select b.id, count(distinct b.at)::int as times
      from unnest(bump_provider, bump_change) as b (id, at) group by b.id
    ) w
    where p.id = w.id;
  end if;

  return query
    select r.at, r_kind[r.at], case when r_kind[r.at] = 'committed' then g_flat[coalesce(g_end[r.at - 1], 0) + 1:g_end[r.at]] end,
      r_detail[r.at]
    from generate_series(1, change_count) as r (at) order by r.at;
end
$$;
