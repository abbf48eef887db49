-- The last part of ledger_apply: writes the differences between the verdicts and the locked rows. Returns the number of inventories that it
-- wrote.
create or replace function ledger_store(batch ledger_batch, held ledger_rows, decided ledger_verdicts) returns int
  language plpgsql
as $$
declare
  b_uuid constant uuid[] := batch.consumers;
  b_item_end constant int[] := batch.step_item_end;
  b_owner constant int[] := batch.step_owner;
  b_move_to constant int[] := batch.step_move_to;
  b_change_end constant int[] := batch.change_step_end;
  o_project constant text[] := held.owner_project;
  o_user constant text[] := held.owner_user;
  o_type constant text[] := held.owner_type;
  b_first_owner constant int[] := batch.consumer_owner;
  s_generation constant int[] := held.generation;
  s_owner constant int[] := held.owner;
  s_from constant int[] := held.holding_from;
  s_to constant int[] := held.holding_to;
  c_generation constant int[] := decided.generation;
  c_owner constant int[] := decided.owner;
  c_type constant int[] := decided.type_owner;
  c_from constant int[] := decided.holding_from;
  c_to constant int[] := decided.holding_to;
  h_place constant int[] := decided.holding_place;
  h_amount constant bigint[] := held.holding_amount;
  p_from constant int[] := decided.step_held_from;
  p_to constant int[] := decided.step_held_to;
  i_stored constant bigint[] := held.used;
  i_used constant bigint[] := decided.used;
  i_row constant tid[] := held.inventory_row;
  i_provider constant int[] := held.inventory_provider;
  i_class constant int[] := held.inventory_class;
  gone uuid[] := '{}';
  changed int[] := '{}';
  cleared uuid[] := '{}';
  holding int[] := '{}';
  rows tid[] := '{}';
  uses bigint[] := '{}';
  row_generation int;
  written int;
begin
  for i in 1..cardinality(b_uuid) loop
    if c_generation[i] < 0 then
      gone := gone || b_uuid[i];
    else
      row_generation := case when s_generation[i] < 0 then (b_first_owner[i] > 0)::int else s_generation[i] end;
      if c_generation[i] <> row_generation or c_owner[i] <> s_owner[i] or c_type[i] <> s_owner[i] then
        changed := changed || i;
      end if;
    end if;
    if c_from[i] <> s_from[i] or c_to[i] <> s_to[i] then
      if s_to[i] > 0 then
        cleared := cleared || b_uuid[i];
      end if;
      if c_to[i] > 0 then
        holding := holding || i;
      end if;
    end if;
  end loop;
  if cardinality(gone) > 0 then
    delete from consumers r where r.uuid = any (gone);
  end if;
  if cardinality(changed) > 0 then
    update consumers r
    set generation = c_generation[w.at], project_id = o_project[c_owner[w.at]], user_id = o_user[c_owner[w.at]],
      type = o_type[c_type[w.at]], updated_at = now()
    from unnest(changed) as w (at)
    where r.uuid = b_uuid[w.at];
  end if;
  if cardinality(cleared) > 0 then
    delete from allocations a where a.consumer_uuid = any (cleared);
  end if;
  if cardinality(holding) > 0 then
    insert into allocations (consumer_uuid, provider_id, class_id, amount)
    select b_uuid[w.at], i_provider[h_place[h.at]], i_class[h_place[h.at]], h_amount[h.at]
    from unnest(holding) as w (at), generate_series(c_from[w.at], c_to[w.at]) as h (at);
  end if;
  for k in 1..cardinality(i_used) loop
    if i_used[k] <> i_stored[k] then
      rows := rows || i_row[k];
      uses := uses || i_used[k];
    end if;
  end loop;
  update inventories v set used = w.used from unnest(rows, uses) as w (row, used) where v.ctid = w.row;
  get diagnostics written = row_count;
  if written <> cardinality(rows) then
    raise exception 'wrote % of % inventories', written, cardinality(rows) using errcode = 'data_corrupted';
  end if;

  if true = any (batch.change_bumps) then
    -- A committed change that bumps raises the generations of the providers that it names, and of those on which a consumer loses its whole
    -- allocation, once each, however often they occur.
    update resource_providers p set generation = p.generation + w.times, updated_at = now()
    from (
      select i_provider[h_place[h.at]] as id, count(distinct c.change)::int as times
      from unnest(b_change_end, batch.change_bumps, decided.kind) with ordinality as c (step_end, bumps, kind, change),
        generate_series(coalesce(b_change_end[c.change - 1], 0) + 1, c.step_end) as s (step),
        generate_series(
          case when b_owner[s.step] > 0 then coalesce(b_item_end[s.step - 1], 0) + 1 else p_from[s.step] end,
          case when b_owner[s.step] > 0 then b_item_end[s.step] else p_to[s.step] end
        ) as h (at)
      where c.bumps and c.kind = 'committed' and b_move_to[s.step] = 0
      group by 1
    ) w
    where p.id = w.id;
  end if;
  return written;
end
$$;
