-- Releases all allocations of these consumers, and removes the consumers. Consumers that hold nothing are skipped.
create or replace function ledger_give_back(consumer_uuids uuid[]) returns void
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  provider_ids int[];
  class_ids int[];
  amounts bigint[];
  written int;
begin
  delete from consumers r using (select u.uuid from unnest(consumer_uuids) as u (uuid) order by u.uuid) w where r.uuid = w.uuid;
  with gone as (
    delete from allocations a where a.consumer_uuid = any (consumer_uuids)
    returning a.provider_id, a.class_id, a.amount
  )
  select array_agg(d.provider_id), array_agg(d.class_id), array_agg(d.amount)
  into provider_ids, class_ids, amounts
  from (
    select gone.provider_id, gone.class_id, sum(gone.amount)::bigint as amount from gone group by 1, 2 order by 1, 2
  ) d;
  update inventories v set used = v.used - w.amount
  from unnest(provider_ids, class_ids, amounts) as w (provider_id, class_id, amount)
  where v.provider_id = w.provider_id and v.class_id = w.class_id;
  get diagnostics written = row_count;
  if written <> coalesce(cardinality(provider_ids), 0) then
    raise exception 'consumers % hold what no inventory has', consumer_uuids using errcode = 'data_corrupted';
  end if;
end
$$;
