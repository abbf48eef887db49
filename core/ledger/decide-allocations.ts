// What a claim is.
//
// A claim takes amounts of resource classes from providers, for a consumer. Five bodies of code make claims. They must agree: a host is full
// for one of them exactly when it is full for the others, and each leaves the same rows behind.
//
// 1. `decideAllocations`, below, is the definition. It is pure: a state and a change in, an outcome and the changed rows out. Simulations and the
//    in-memory cell run on it, and tests compare the others with it. Every rule is here: expected generations, unknown names, the units of an
//    inventory, capacity against what was in use before, moves from one consumer to another, several steps in one change.
// 2. `ledger_apply` (adapters/postgres/schema/cell/functions) is the same in SQL, for any batch of changes. It locks every row first, then decides in
//    memory, then writes, and it names every reason of a refusal. It exists because a decision is only safe under the locks of the database that
//    stores it. It takes some thirty statements a batch, most of them for cases that a boot does not have. Operations, releases, attached
//    ports and the Placement API's changes of existing consumers use it directly, and the three below leave to it whatever they cannot do.
// 3. `ledger_claim_first` makes first claims over the Placement API: new consumers, all of which fit. It exists because this is the most
//    frequent request to a busy Placement API, and because it may raise providers' generations, which a cell's own claims never do.
//    `ledger_claim_alone` is its form for one claim from one provider, which a scheduler that sends one after the other waits for.
// 4. `ledger_claim_together` makes the claims of boots, inside the transaction of `cell_dispatch` that also writes the server and its task. It
//    exists because every boot pays for it.
// 5. `ledger_swap_together` makes the claims of hops, inside the transaction of `cell_hop_together`: a consumer gives back all that it holds
//    and takes something else. It exists because a full host sends many servers to their alternates at once.
//
// Bodies 3 to 5 write at once, under conditions, and lock as they write: a condition that does not hold leaves one row fewer than expected, and then all
// of it is undone and `ledger_apply` decides. So only 1 and 2 know how to refuse, and a rule that makes a claim fail has to be in all five: as a
// refusal in 1 and 2, as a condition in 3 to 5. A rule about what is asked for is `WorkingLedger` here and `ledger_decide` there; capacity is
// `capacityOf` here and `ledger_capacity` there, which 2 to 5 share.
//
// Held together by: the contract of ledgers (test/contract/ledger.contract.ts), random commands to both bodies (test/integration/ledger-model.long.test.ts),
// several sessions at once (test/integration/ledger-races.test.ts), and the contract of the cell's store for boots and hops.

import { assert } from "../assert.ts";
import type { AllocationChange, AllocationOutcome, AllocationStep, Shortfall } from "./allocation-change.ts";
import type { ConsumerUuid } from "./ids.ts";
import { type LedgerDecision, type LedgerState, unchanged } from "./ledger-state.ts";
import { type AllocationItem, capacityOf } from "./model.ts";
import { WorkingLedger } from "./working-ledger.ts";

type Refusal = Exclude<AllocationOutcome, { readonly kind: "committed" | "no-capacity" }>;

/**
 * Decides a change of allocations, all of its steps or none. The first failing step refuses the change for a consumer that is not as
 * expected, or for an unknown provider or inventory. After the last step, the change is refused for every amount that an inventory's units
 * forbid and for every inventory that grew past its capacity. These are all listed, in the order of the items. An inventory that already
 * exceeds its capacity, because its host shrank, accepts any change that does not raise its use.
 *
 * Source: Placement's write of allocations, with capacity compared instead of provider generations. Cost: proportional to the items that
 * are named and released. `ledger_apply` is the same in SQL.
 */
export function decideAllocations(state: LedgerState, change: AllocationChange): LedgerDecision<AllocationOutcome> {
  const working = new WorkingLedger(state);
  for (const step of change.steps) {
    const bumps = change.bumpProviders === true;
    const refusal = step.kind === "replace" ? replace(working, step, bumps) : move(working, step);
    if (refusal !== null) return unchanged<AllocationOutcome>(refusal);
  }
  const shortfalls = shortfallsOf(working, change);
  if (shortfalls.length > 0) return unchanged<AllocationOutcome>({ kind: "no-capacity", shortfalls });
  return {
    outcome: { kind: "committed", generations: generationsOf(working, change) },
    delta: working.delta(),
  };
}

function replace(
  working: WorkingLedger,
  step: Extract<AllocationStep, { readonly kind: "replace" }>,
  bumps: boolean,
): Refusal | null {
  assertItems(step.items);
  const before = working.holder(step.consumer);
  const actual = before?.generation ?? null;
  if (step.expected !== "any" && step.expected !== actual) {
    return { kind: "consumer-conflict", consumer: step.consumer, expected: step.expected, actual };
  }
  for (const { provider, resourceClass } of step.items) {
    const record = working.provider(provider);
    if (record === undefined) return { kind: "unknown-provider", provider };
    if (!record.inventories.has(resourceClass)) return { kind: "unknown-inventory", provider, resourceClass };
  }
  for (const item of before?.items ?? []) working.addUse(item, -item.amount);
  for (const item of step.items) working.addUse(item, item.amount);
  if (bumps) {
    const named = step.items.length > 0 ? step.items : (before?.items ?? []);
    for (const { provider } of named) working.bump(provider);
  }
  const { projectId, userId, type } = step.owner;
  const generation = (actual ?? 0) + 1;
  working.setHolder(
    step.consumer,
    step.items.length === 0 ? null : { uuid: step.consumer, generation, projectId, userId, type, items: step.items },
  );
  return null;
}

function move(working: WorkingLedger, step: Extract<AllocationStep, { readonly kind: "move" }>): Refusal | null {
  const source = working.holder(step.from);
  if (source === undefined) {
    return { kind: "consumer-conflict", consumer: step.from, expected: "any", actual: null };
  }
  const target = working.holder(step.to);
  if (target !== undefined) {
    return { kind: "consumer-conflict", consumer: step.to, expected: null, actual: target.generation };
  }
  working.setHolder(step.from, null);
  working.setHolder(step.to, { ...source, uuid: step.to, generation: 1, type: step.toType });
  return null;
}

function assertItems(items: readonly AllocationItem[]): void {
  const seen = new Set<string>();
  for (const { provider, resourceClass, amount } of items) {
    const key = `${provider} ${resourceClass}`;
    assert(!seen.has(key), `${resourceClass} of provider ${provider} is listed twice`);
    assert(
      Number.isSafeInteger(amount) && amount > 0,
      `the amount of ${resourceClass} must be a positive integer, not ${amount}`,
    );
    seen.add(key);
  }
}

/** All shortfalls of the working copy, in the order of the items. For one item the units come before the capacity. */
function shortfallsOf(working: WorkingLedger, change: AllocationChange): Shortfall[] {
  const items = change.steps.flatMap((step) => (step.kind === "replace" ? step.items : []));
  const requestedTotals = new Map<string, number>();
  for (const item of items) {
    requestedTotals.set(keyOf(item), (requestedTotals.get(keyOf(item)) ?? 0) + item.amount);
  }
  const shortfalls: Shortfall[] = [];
  const compared = new Set<string>();
  for (const item of items) {
    const { provider, resourceClass, amount } = item;
    const inventory = working.inventory(item);
    const { before, after } = working.use(item);
    const requestedTotal = requestedTotals.get(keyOf(item)) ?? amount;
    const used = Math.max(0, after - requestedTotal);
    const add = (reason: Shortfall["reason"], requested: number, limit: number): void => {
      shortfalls.push({ provider, resourceClass, reason, requested, used, limit });
    };
    if (amount < inventory.minUnit) add("min_unit", amount, inventory.minUnit);
    if (amount > inventory.maxUnit) add("max_unit", amount, inventory.maxUnit);
    if (amount % inventory.stepSize !== 0) add("step_size", amount, inventory.stepSize);
    if (compared.has(keyOf(item))) continue;
    compared.add(keyOf(item));
    const capacity = capacityOf(inventory);
    if (after > before && after > capacity) add("capacity", requestedTotal, capacity);
  }
  return shortfalls;
}

const keyOf = (item: AllocationItem): string => `${item.provider} ${item.resourceClass}`;

function generationsOf(working: WorkingLedger, change: AllocationChange): ReadonlyMap<ConsumerUuid, number> {
  const generations = new Map<ConsumerUuid, number>();
  for (const step of change.steps) {
    for (const uuid of step.kind === "replace" ? [step.consumer] : [step.from, step.to]) {
      const holder = working.holder(uuid);
      if (holder !== undefined) generations.set(uuid, holder.generation);
    }
  }
  return generations;
}
