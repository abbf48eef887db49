-- What the functions behind ledger_apply hand to each other: it locks, decides, and stores. Parallel arrays, as in ledger_batch.

-- The rows that a batch of allocation changes is about, locked, as they are stored.
create type ledger_rows as (
  -- Of each consumer of the batch: its generation (-2: it did not exist, and its row was inserted, with generation 1 if the batch's first step for
  -- it is a claim, else 0), its owner (an index into the owners), and the range of holdings that it has.
  generation int[],
  owner int[],
  holding_from int[],
  holding_to int[],
  -- Owners: the batch's, then those of the consumers that existed.
  owner_project text[],
  owner_user text[],
  owner_type text[],
  -- Holdings: the batch's items, then the stored allocations. Of the stored ones, by ids, what they are of.
  holding_amount bigint[],
  stored_provider int[],
  stored_class int[],
  -- The ids of the batch's providers; null: there is no such provider.
  provider_id int[],
  -- Inventories by their place in lock order; `used` as it is stored, `row` where the row is: it cannot move while it is locked.
  inventory_provider int[],
  inventory_class int[],
  used bigint[],
  capacity bigint[],
  min_unit int[],
  max_unit int[],
  step_size int[],
  inventory_row tid[],
  -- The place of the batch's n-th inventory (0: it does not exist), and of that of the n-th stored allocation.
  place_named int[],
  place_stored int[]
);

-- What is decided of a batch, and how it leaves the rows.
create type ledger_verdicts as (
  -- Of each change, as ledger_apply answers it; a change's generations end at its `_end`.
  kind text[],
  detail jsonb[],
  generations int[],
  generations_end int[],
  -- As in ledger_rows, with the owner that a consumer's type is of in a list of its own: a move changes the type alone. A consumer of
  -- generation -2 exists no longer.
  generation int[],
  owner int[],
  type_owner int[],
  holding_from int[],
  holding_to int[],
  used bigint[],
  -- The place of each holding's inventory.
  holding_place int[],
  -- Of each step of a committed change: what its consumer held before.
  step_held_from int[],
  step_held_to int[]
);
