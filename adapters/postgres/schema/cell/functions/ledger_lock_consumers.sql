-- The first part of ledger_apply: creates or locks every consumer of the batch, and reads the allocations of those that existed.
create or replace function ledger_lock_consumers(batch ledger_batch) returns ledger_rows
  language plpgsql
as $$
declare
  b_uuid constant uuid[] := batch.consumers;
  b_owner constant int[] := batch.consumer_owner;
  consumer_count constant int := cardinality(b_uuid);
  item_count constant int := cardinality(batch.item_inventory);
  o_project text[] := batch.owner_project;
  o_user text[] := batch.owner_user;
  o_type text[] := batch.owner_type;
  created uuid[];
  found_at int[] := '{}';
  s_generation int[] := array_fill(-2, array[consumer_count]);
  s_owner int[] := b_owner;
  s_from int[] := array_fill(1, array[consumer_count]);
  s_to int[] := array_fill(0, array[consumer_count]);
  h_consumer int[];
  found record;
  next_created int := 1;
  i int;
  result ledger_rows;
begin
  -- Works in one ascending pass (`do update ... where false` locks and writes nothing).
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
  result.stored_provider := '{}';
  result.stored_class := '{}';
  result.holding_amount := batch.item_amount;

  if cardinality(created) < consumer_count then
    -- Both lists ascend, so one pass separates the created consumers from those that existed.
    for i in 1..consumer_count loop
      if b_uuid[i] = created[next_created] then
        next_created := next_created + 1;
      else
        found_at := found_at || i;
      end if;
    end loop;
    if next_created <= cardinality(created) then
      raise exception 'consumers of a batch must ascend: %', b_uuid using errcode = 'invalid_parameter_value';
    end if;
    for found in
      select w.at, r.generation, r.project_id, r.user_id, r.type
      from unnest(found_at) as w (at) join consumers r on r.uuid = b_uuid[w.at]
    loop
      o_project := o_project || found.project_id;
      o_user := o_user || found.user_id;
      o_type := o_type || found.type;
      s_generation[found.at] := found.generation;
      s_owner[found.at] := cardinality(o_type);
    end loop;

    select array_agg(h.at), coalesce(array_agg(h.provider_id), '{}'), coalesce(array_agg(h.class_id), '{}'),
      batch.item_amount || array_agg(h.amount)
    into h_consumer, result.stored_provider, result.stored_class, result.holding_amount
    from (
      select w.at, a.provider_id, a.class_id, a.amount
      from unnest(found_at) as w (at) join allocations a on a.consumer_uuid = b_uuid[w.at]
      order by w.at, a.provider_id, a.class_id
    ) h;
    for x in 1..coalesce(cardinality(h_consumer), 0) loop
      i := h_consumer[x];
      if s_to[i] = 0 then
        s_from[i] := item_count + x;
      end if;
      s_to[i] := item_count + x;
    end loop;
  end if;

  result.generation := s_generation;
  result.owner := s_owner;
  result.holding_from := s_from;
  result.holding_to := s_to;
  result.owner_project := o_project;
  result.owner_user := o_user;
  result.owner_type := o_type;
  return result;
end
$$;
