-- The writes of every boot and delete again, with fewer statements in each: at some claims a batch a statement's start costs more
-- than its rows. What is not the common case still goes the general way of ledger_apply.
--
-- Open tasks are asked for by `outcome is null`, never by `ended_at is null` (the two are written together): the partial index
-- on the latter is for sweeps, and a plan made while the tables are small would walk all of it, dead entries too.
--
-- Plans are generic and forced to index look-ups, as ledger_apply's are: to plan costs as much as to run.

-- Lock order as everywhere; what it holds afterwards is what ledger_apply would hold.
--
-- Claims all changes of the batch, if each is the first claim of a new consumer and all fit together, and no provider's generation
-- is to be raised. Else nothing is left written, and the answer is false: ledger_apply knows who is refused and why.
create function ledger_claim_new(batch ledger_batch) returns boolean
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
  created uuid[];
  -- The batch's inventories in lock order; inv_at: the place in it of the batch's n-th.
  i_source int[];
  i_provider int[];
  i_class int[];
  i_row tid[];
  i_used bigint[];
  i_capacity bigint[];
  i_min int[];
  i_max int[];
  i_step int[];
  i_wanted bigint[];
  inv_at int[];
  fits boolean;
  n int;
begin
  if true = any (batch.change_bumps) or 0 <= any (batch.step_expected) or 0 = any (b_owner)
    or cardinality(b_consumer) <> consumer_count or cardinality(batch.change_step_end) <> consumer_count
  then
    return false;
  end if;

  with inserted as (
    insert into consumers as r (uuid, generation, project_id, user_id, type)
    select w.uuid, 1, o_project[w.owner], o_user[w.owner], o_type[w.owner]
    from unnest(b_uuid, b_owner) as w (uuid, owner)
    order by w.uuid
    on conflict do nothing
    returning r.uuid
  )
  select array_agg(inserted.uuid) into created from inserted;

  if cardinality(created) = consumer_count then
    select array_agg(l.at), array_agg(l.provider_id), array_agg(l.class_id), array_agg(l.row), array_agg(l.used),
      array_agg(l.capacity), array_agg(l.min_unit), array_agg(l.max_unit), array_agg(l.step_size)
    into i_source, i_provider, i_class, i_row, i_used, i_capacity, i_min, i_max, i_step
    from (
      select w.at::int, v.provider_id, v.class_id, v.ctid as row, v.used,
        ledger_capacity(v.total, v.reserved, v.allocation_ratio) as capacity, v.min_unit, v.max_unit, v.step_size
      from unnest(b_provider, b_class) with ordinality as w (provider, class, at)
      join resource_providers p on p.uuid = b_provider_uuid[w.provider]
      join resource_classes r on r.name = b_class_name[w.class]
      join inventories v on v.provider_id = p.id and v.class_id = r.id
      order by v.provider_id, v.class_id
      for update of v
    ) l;
    if cardinality(i_source) = cardinality(b_provider) then
      for n in 1..cardinality(i_source) loop
        inv_at[i_source[n]] := n;
      end loop;
      select array_agg(d.wanted order by d.at), bool_and(d.fits) into i_wanted, fits
      from (
        select w.at, i_used[w.at] + sum(w.amount)::bigint as wanted, i_used[w.at] + sum(w.amount) <= i_capacity[w.at]
          and min(w.amount) >= i_min[w.at] and max(w.amount) <= i_max[w.at]
          and bool_and(w.amount % i_step[w.at] = 0) as fits
        from (
          select inv_at[b.inventory] as at, b.amount
          from unnest(b_item_inventory, b_amount) as b (inventory, amount)
        ) w
        group by w.at
      ) d;
    end if;
  end if;
  if fits is distinct from true then
    delete from consumers r where r.uuid = any (created);
    return false;
  end if;

  insert into allocations (consumer_uuid, provider_id, class_id, amount)
  select b_uuid[b_consumer[w.step]], i_provider[inv_at[b_item_inventory[h.at]]],
    i_class[inv_at[b_item_inventory[h.at]]], b_amount[h.at]
  from unnest(b_item_end) with ordinality as w (item_end, step),
    generate_series(coalesce(b_item_end[w.step - 1], 0) + 1, w.item_end) as h (at);
  update inventories v set used = w.used from unnest(i_row, i_wanted) as w (row, used) where v.ctid = w.row;
  get diagnostics n = row_count;
  if n <> cardinality(i_row) then
    raise exception 'wrote % of % inventories', n, cardinality(i_row) using errcode = 'data_corrupted';
  end if;
  return true;
end
$$;

-- Gives back all that these consumers hold, so that they exist no more. Those that hold nothing are none of its business.
create function ledger_give_back(consumer_uuids uuid[]) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  held int;
  written int;
begin
  perform from consumers r where r.uuid = any (consumer_uuids) order by r.uuid for update;
  perform from (
    select distinct a.provider_id, a.class_id from unnest(consumer_uuids) as w (uuid)
    join allocations a on a.consumer_uuid = w.uuid
  ) h
  join inventories v on v.provider_id = h.provider_id and v.class_id = h.class_id
  order by v.provider_id, v.class_id for update of v;
  with gone as (
    delete from allocations a where a.consumer_uuid = any (consumer_uuids)
    returning a.provider_id, a.class_id, a.amount
  ),
  demand as (
    select gone.provider_id, gone.class_id, sum(gone.amount)::bigint as amount from gone group by 1, 2
  ),
  less as (
    update inventories v set used = v.used - d.amount from demand d
    where v.provider_id = d.provider_id and v.class_id = d.class_id
    returning 1
  ),
  forgotten as (
    delete from consumers r where r.uuid = any (consumer_uuids)
  )
  select (select count(*) from demand), (select count(*) from less) into held, written;
  if held <> written then
    raise exception 'consumers % hold what no inventory has', consumer_uuids using errcode = 'data_corrupted';
  end if;
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
  created int[];
  outcomes text[];
  details jsonb[];
  refused uuid[];
  done int[];
begin
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

  if cardinality(created) = count and ledger_claim_new(changes) then
    done := created;
    outcomes := array_fill('dispatched'::text, array[count]);
  else
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
  end if;
  insert into tasks (id, server_uuid, kind, payload)
  select task_ids[d.at], server_uuids[d.at], 'build', substring(bytes from payload_starts[d.at] for payload_lengths[d.at])
  from unnest(done) as d (at);
  insert into attempts (task_id, selection, server_uuid, host)
  select task_ids[d.at], 0, server_uuids[d.at], hosts[d.at] from unnest(done) as d (at);

  return query
    -- Replication names transactions by the low 32 bits.
    select r.at, outcomes[r.at], details[r.at], pg_current_xact_id()::text::bigint & 4294967295
    from generate_series(1, count) as r (at);
end
$$;

-- As before, but that a server which is not here costs more than one that is: its door is shut after the others were locked, so
-- that two batches with such servers may end in a deadlock, and are asked again.
create or replace function cell_request_delete(
  server_uuids uuid[], task_ids uuid[], bytes bytea, payload_starts int[], payload_lengths int[]
)
  returns table (at int, outcome text, payload bytea)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  known int;
  -- Servers that are here; of these, those that have a home.
  present uuid[];
  homed uuid[];
  open_tasks uuid[];
  -- Servers with a delete task that still runs, and all others that are here.
  earlier uuid[];
  fenced uuid[];
begin
  for tries in 1..2 loop
    select count(*), coalesce(array_agg(l.uuid) filter (where l.status not in ('CLOSED', 'DELETED')), '{}'),
      coalesce(array_agg(l.uuid) filter (where l.host is not null), '{}')
    into known, present, homed
    from (
      select s.uuid, s.status, s.host from servers s where s.uuid = any (server_uuids) order by s.uuid for no key update
    ) l;
    exit when known = cardinality(server_uuids);
    perform cell_shut(server_uuids);
  end loop;
  select coalesce(array_agg(l.server_uuid) filter (where l.kind = 'delete'), '{}'), coalesce(array_agg(l.id), '{}')
  into earlier, open_tasks
  from (
    select t.id, t.server_uuid, t.kind from tasks t
    where t.server_uuid = any (present) and t.outcome is null order by t.id for no key update
  ) l;
  fenced := case when earlier = '{}' then present
    else array(select p.uuid from unnest(present) as p (uuid) where p.uuid <> all (earlier)) end;

  if cardinality(open_tasks) > cardinality(earlier) then
    update tasks t set epoch = t.epoch + 1, ended_at = now(), outcome = 'cancelled'
    where t.id = any (open_tasks) and t.server_uuid = any (fenced);
  end if;
  update attempts a set ended_at = now(), result = 'cancelled' where a.server_uuid = any (fenced) and a.result is null;
  update servers s
  set status = case when s.host is null then 'DELETED' else s.status end,
    task_state = case when s.host is null then null else 'deleting' end,
    deleted_at = case when s.host is null then now() end,
    updated_at = now()
  where s.uuid = any (fenced);
  insert into tasks (id, server_uuid, kind, payload)
  select w.id, w.uuid, 'delete', substring(bytes from w.payload_start for w.payload_length)
  from unnest(task_ids, server_uuids, payload_starts, payload_lengths) as w (id, uuid, payload_start, payload_length)
  where w.uuid = any (homed) and w.uuid = any (fenced);

  return query
    select w.at::int, case when w.uuid = any (earlier) or w.uuid = any (homed) and w.uuid = any (fenced) then 'queued' else 'deleted' end,
      case when w.uuid = any (earlier) then (
        select t.payload from tasks t where t.server_uuid = w.uuid and t.kind = 'delete' and t.outcome is null
      ) end
    from unnest(server_uuids) with ordinality as w (uuid, at);
end
$$;

create or replace function cell_take(conductor uuid, task_ids uuid[])
  returns table (id uuid, payload bytea, epoch int, selection int, host text, attempt_id text)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
begin
  return query select o.* from cell_own(conductor, array(
    select t.id from tasks t
    where t.id = any (task_ids) and t.outcome is null
      and (t.owner is null or t.owner = conductor
        or not exists (select from conductors c where c.id = t.owner and c.lease_expires_at > now()))
    order by t.id for no key update of t
  )) as o;
end
$$;

alter function cell_claims set plan_cache_mode = force_generic_plan;
alter function cell_commit_active set plan_cache_mode = force_generic_plan;
alter function cell_hop set plan_cache_mode = force_generic_plan;

-- Ends these tasks with `outcome`, and gives back what their servers hold. Returns the positions of what is committed;
-- `repeated`: it was already.
create function cell_give_back(task_ids uuid[], server_uuids uuid[], epochs int[], outcome text)
  returns table (at int, repeated boolean)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  fresh int[];
  committed int[];
begin
  select coalesce(array_agg(c.at) filter (where not c.repeated), '{}'), coalesce(array_agg(c.at), '{}')
  into fresh, committed from cell_claims(task_ids, server_uuids, epochs, outcome) as c;
  perform ledger_give_back(array(select server_uuids[f.at] from unnest(fresh) as f (at)));
  update tasks t set ended_at = now(), outcome = cell_give_back.outcome
  from unnest(fresh) as f (at) where t.id = task_ids[f.at];
  return query select c.at, c.at <> all (fresh) from unnest(committed) as c (at);
end
$$;

drop function cell_commit_error(uuid[], uuid[], int[], int[], text[], text[], ledger_batch);
create function cell_commit_error(
  task_ids uuid[], server_uuids uuid[], epochs int[], selections int[], attempt_reasons text[], reasons text[]
)
  returns setof int
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  fresh int[];
  committed int[];
begin
  select coalesce(array_agg(c.at) filter (where not c.repeated), '{}'), array_agg(c.at) into fresh, committed
  from cell_give_back(task_ids, server_uuids, epochs, 'error') as c;
  update servers s
  set status = 'ERROR', task_state = null, host = null, attempt_id = null, fault = reasons[f.at], fault_at = now(),
    updated_at = now()
  from unnest(fresh) as f (at) where s.uuid = server_uuids[f.at];
  update attempts a set ended_at = now(), result = 'failed', reason = attempt_reasons[f.at]
  from unnest(fresh) as f (at)
  where a.task_id = task_ids[f.at] and a.selection = selections[f.at] and a.result is null;
  return query select c.at from unnest(committed) as c (at);
end
$$;

drop function cell_commit_deleted(uuid[], uuid[], int[], ledger_batch);
create function cell_commit_deleted(task_ids uuid[], server_uuids uuid[], epochs int[])
  returns setof int
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  fresh int[];
  committed int[];
begin
  select coalesce(array_agg(c.at) filter (where not c.repeated), '{}'), array_agg(c.at) into fresh, committed
  from cell_give_back(task_ids, server_uuids, epochs, 'deleted') as c;
  update servers s
  set status = 'DELETED', task_state = null, host = null, attempt_id = null, deleted_at = now(), updated_at = now()
  from unnest(fresh) as f (at) where s.uuid = server_uuids[f.at];
  return query select c.at from unnest(committed) as c (at);
end
$$;

drop function cell_give_back(uuid[], uuid[], int[], text, ledger_batch);
