-- The writes of every boot and delete again: what is nearly always so is written at once, under conditions, in one pass that locks as
-- it writes, instead of being locked and looked at first. One row less than expected undoes all of it (BT002, caught where it began),
-- and the careful way of before tells who is refused and why. Each row lock that is saved is a record of the log, which every
-- follower decodes.
--
-- Lock order as everywhere: an update or delete that is joined to a sorted list locks in the list's order, as these plans (nested
-- loops, index look-ups) take it. What such an update finds changed under it, it judges anew by the row's newest version.

-- Claims all changes of the batch: each the first claim of a new consumer, which all fit together, and no provider's generation is to
-- be raised. Raises unique_violation or BT002 if that is not so; the caller undoes what was written.
create function ledger_claim_together(batch ledger_batch) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  -- Fields of the batch are taken out once: within a statement they would be, for each row.
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
  -- Of the batch's n-th inventory.
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

create or replace function cell_dispatch(
  server_uuids uuid[], names text[], project_ids text[], user_ids text[], created_at_ms bigint[],
  hosts text[], attempt_ids text[], task_ids uuid[],
  bytes bytea, spec_starts int[], spec_lengths int[], payload_starts int[], payload_lengths int[],
  changes ledger_batch
)
  returns table (at int, outcome text, detail jsonb, xid bigint)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  count constant int := cardinality(server_uuids);
  -- Replication names transactions by the low 32 bits.
  this_xid constant bigint := pg_current_xact_id()::text::bigint & 4294967295;
  created int[];
  outcomes text[];
  details jsonb[];
  refused uuid[];
  done int[];
begin
  begin
    insert into servers (uuid, status, task_state, spec, project_id, user_id, name, host, attempt_id, created_at)
    select w.uuid, 'BUILD', 'spawning', substring(bytes from w.spec_start for w.spec_length), w.project_id, w.user_id,
      w.name, w.host, w.attempt_id, to_timestamp(w.created_at_ms / 1000.0)
    from unnest(server_uuids, names, project_ids, user_ids, created_at_ms, hosts, attempt_ids, spec_starts, spec_lengths)
      as w (uuid, name, project_id, user_id, created_at_ms, host, attempt_id, spec_start, spec_length)
    order by w.uuid;
    perform ledger_claim_together(changes);
    insert into tasks (id, server_uuid, kind, payload)
    select w.id, w.server_uuid, 'build', substring(bytes from w.payload_start for w.payload_length)
    from unnest(task_ids, server_uuids, payload_starts, payload_lengths) as w (id, server_uuid, payload_start, payload_length);
    insert into attempts (task_id, selection, server_uuid, host)
    select w.task_id, 0, w.server_uuid, w.host from unnest(task_ids, server_uuids, hosts) as w (task_id, server_uuid, host);
    return query select r.at, 'dispatched', null::jsonb, this_xid from generate_series(1, count) as r (at);
    return;
  exception when unique_violation or sqlstate 'BT002' then
    null;
  end;

  with inserted as (
    insert into servers (uuid, status, task_state, spec, project_id, user_id, name, host, attempt_id, created_at)
    select w.uuid, 'BUILD', 'spawning', substring(bytes from w.spec_start for w.spec_length), w.project_id, w.user_id,
      w.name, w.host, w.attempt_id, to_timestamp(w.created_at_ms / 1000.0)
    from unnest(server_uuids, names, project_ids, user_ids, created_at_ms, hosts, attempt_ids, spec_starts, spec_lengths)
      as w (uuid, name, project_id, user_id, created_at_ms, host, attempt_id, spec_start, spec_length)
    order by w.uuid
    on conflict do nothing
    returning servers.uuid
  )
  select coalesce(array_agg(array_position(server_uuids, inserted.uuid)), '{}') into created from inserted;
  outcomes := array_fill(null::text, array[count]);
  if cardinality(created) < count then
    select array_agg(case when w.at = any (created) then null
      when s.status in ('CLOSED', 'DELETED') then 'closed' else 'already-dispatched' end order by w.at)
    into outcomes
    from unnest(server_uuids) with ordinality as w (uuid, at) join servers s on s.uuid = w.uuid;
    changes := cell_without(changes, array(select p.at from generate_series(1, count) as p (at) where p.at <> all (created)));
  end if;

  select array_agg(coalesce(outcomes[a.change], case a.kind when 'committed' then 'dispatched' else a.kind end) order by a.change),
    array_agg(a.detail order by a.change)
  into outcomes, details
  from ledger_apply(changes) as a;

  done := array(select c.at from unnest(created) as c (at) where outcomes[c.at] = 'dispatched');
  if cardinality(done) < cardinality(created) then
    refused := array(select server_uuids[c.at] from unnest(created) as c (at) where outcomes[c.at] <> 'dispatched');
    delete from servers s where s.uuid = any (refused);
  end if;
  insert into tasks (id, server_uuid, kind, payload)
  select task_ids[d.at], server_uuids[d.at], 'build', substring(bytes from payload_starts[d.at] for payload_lengths[d.at])
  from unnest(done) as d (at);
  insert into attempts (task_id, selection, server_uuid, host)
  select task_ids[d.at], 0, server_uuids[d.at], hosts[d.at] from unnest(done) as d (at);
  return query select r.at, outcomes[r.at], details[r.at], this_xid from generate_series(1, count) as r (at);
end
$$;

drop function ledger_claim_new(ledger_batch);
