-- requires: ledger_decide, ledger_lock_consumers, ledger_lock_inventories, ledger_store
-- Applies the changes in order, each as a whole or not at all: a refused change leaves no trace, and its demand does not count for the next one.
-- Returns one row for each change:
--   kind         committed | no-capacity | unknown-provider | unknown-inventory | consumer-conflict
--   generations  of a committed change: for each step the generation of its consumer after the change (for a move that of `from`, then
--                that of `to`); 0 when the consumer no longer exists
--   detail       of a refused change: the other fields of AllocationOutcome, under the same names
--
-- Locks, in the global order: consumers (by uuid; those that do not exist yet are inserted, so that two first claims of one
-- consumer meet on its primary key), providers (by id; only for changes that raise generations), inventories (by
-- provider_id, class_id). Earlier locks of the transaction must come before consumers in that order, and it may call this function only
-- once. Otherwise deadlocks (40P01) are possible, and must be retried.
--
-- Cost: a fixed number of statements for each batch, whatever its size; between them the changes are decided in memory. Listing the shortfalls
-- of a refused change costs in proportion to its items and to the inventories of the batch.
--
-- Locking, deciding in memory and writing have functions of their own. Prefixes of their variables: b_ the batch; s_ consumers as they are
-- stored, c_ after the changes so far, p_ before a step; h_ holdings: the items of the batch, then the stored allocations; i_ inventories, by
-- their place in lock order.
--
-- The settings also apply to the functions that it calls. They force index look-ups, because the first batches are planned when the tables
-- are empty, and their plans stay.
create or replace function ledger_apply(batch ledger_batch)
  returns table (change int, kind text, generations int[], detail jsonb)
  language plpgsql
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  held ledger_rows;
  decided ledger_verdicts;
  -- Not used. The call is an assignment because `perform` would turn it into a query.
  written int;
begin
  held := ledger_lock_consumers(batch);
  held := ledger_lock_inventories(batch, held);
  decided := ledger_decide(batch, held);
  written := ledger_store(batch, held, decided);
  return query
    select r.at::int, r.kind,
      case when r.kind = 'committed' then decided.generations[coalesce(decided.generations_end[r.at - 1], 0) + 1:r.generations_end] end,
      r.detail
    from unnest(decided.kind, decided.detail, decided.generations_end) with ordinality as r (kind, detail, generations_end, at)
    order by r.at;
end
$$;
