-- requires: ledger_decide, ledger_lock_consumers, ledger_lock_inventories, ledger_store
-- Applies the changes in order, each all or nothing: a refused one leaves no trace and its demand does not count for the
-- next. One row a change:
--   kind         committed | no-capacity | unknown-provider | unknown-inventory | consumer-conflict
--   generations  committed: for each step the generation of its consumer after the change (a move: of `from`, then of
--                `to`); 0: it no longer exists
--   detail       otherwise: the other fields of AllocationOutcome, under the same names
--
-- Locks, in the global order: consumers (by uuid; those that do not exist yet are inserted, so that two first claims of one
-- consumer meet on its primary key), providers (by id; only for changes that raise generations), inventories (by
-- provider_id, class_id). What the transaction locked before must come before consumers in that order, and it may call this
-- once; else deadlocks (40P01) are possible, and are to be retried.
--
-- Cost: a fixed number of statements a batch, whatever its size; between them the changes are decided in memory. What a refused change lacks
-- costs in proportion to its items and to the inventories of the batch.
--
-- It locks, decides in memory, and writes, each in functions of its own. Their variables: b_ the batch; s_ consumers as they are stored, c_ as the
-- changes so far leave them, p_ as they were before a step; h_ holdings: the items of the batch, then the stored allocations; i_ inventories,
-- by their place in lock order.
--
-- The settings hold for the functions that it calls, too: the plans are forced to index look-ups because the first batches come when the
-- tables are empty and their plans stay.
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
  -- Not asked for: the call is an assignment because `perform` would make a query of it.
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
