import type { Pool, PoolClient } from "pg";
import type { AllocationChange, AllocationOutcome } from "../../../core/ledger/allocation-change.ts";
import type { ProviderUuid, ResourceClass } from "../../../core/ledger/ids.ts";
import type { Inventory } from "../../../core/ledger/model.ts";
import type { Reshape, ReshapeOutcome } from "../../../core/placement/placement-store.ts";
import { decodeOutcome, encodeChanges, type LedgerApplyRow } from "../encode-changes.ts";
import { inTransaction } from "../transaction.ts";
import { replaceInventories, widenInventories } from "./inventories.ts";
import { bumpGeneration, lockProvider, type ProviderWithIds } from "./provider-rows.ts";

/** Carries a refusal out of the transaction, so that it is rolled back. */
class Refused extends Error {
  readonly outcome: Exclude<ReshapeOutcome, { kind: "reshaped" }>;
  constructor(outcome: Exclude<ReshapeOutcome, { kind: "reshaped" }>) {
    super(outcome.kind);
    this.outcome = outcome;
  }
}

type Locked = Map<
  ProviderUuid,
  { readonly row: ProviderWithIds; readonly inventories: ReadonlyMap<ResourceClass, Inventory> }
>;

/**
 * Replaces inventories and allocations of many providers and consumers in one transaction, as upstream does it: first every
 * provider gets its new inventories beside its old ones, then the allocations move, then what is left out goes.
 *
 * Locks consumers before providers, as everybody; providers in uuid order here and in id order elsewhere: should that
 * deadlock, Postgres chooses a victim and the transaction runs anew.
 */
export async function reshape(pool: Pool, reshaping: Reshape): Promise<ReshapeOutcome> {
  try {
    return await inTransaction(pool, async (client): Promise<ReshapeOutcome> => {
      await lockConsumers(client, reshaping.change);
      const locked = await lockAll(client, reshaping);
      for (const { row, inventories } of locked.values()) {
        if (inventories.size === 0) continue;
        const refused = await widenInventories(client, row.id, inventories);
        if (refused) throw new Refused({ kind: "unknown-class", resourceClass: refused });
        await bumpGeneration(client, row.id);
      }
      await applyChange(client, reshaping.change);
      for (const [provider, { row, inventories }] of locked) {
        const refused = await replaceInventories(client, row.id, inventories);
        if (refused?.kind === "in-use")
          throw new Refused({ kind: "in-use", provider, resourceClasses: refused.resourceClasses });
        await bumpGeneration(client, row.id);
      }
      return { kind: "reshaped" };
    });
  } catch (error) {
    if (error instanceof Refused) return error.outcome;
    throw error;
  }
}

async function lockConsumers(client: PoolClient, change: AllocationChange): Promise<void> {
  const uuids = change.steps.flatMap((step) => (step.kind === "replace" ? [step.consumer] : [step.from, step.to]));
  await client.query("select from consumers where uuid = any ($1::uuid[]) order by uuid for update", [uuids]);
}

async function lockAll(client: PoolClient, reshaping: Reshape): Promise<Locked> {
  const locked: Locked = new Map();
  for (const wanted of reshaping.inventories.toSorted((a, b) => (a.provider < b.provider ? -1 : 1))) {
    const { provider, expected } = wanted;
    const row = await lockProvider(client, provider);
    if (row === null) throw new Refused({ kind: "unknown-provider", provider });
    if (row.generation !== expected)
      throw new Refused({ kind: "generation-conflict", provider, actual: row.generation, given: expected });
    locked.set(provider, { row, inventories: wanted.inventories });
  }
  return locked;
}

async function applyChange(client: PoolClient, change: AllocationChange): Promise<void> {
  if (change.steps.length === 0) return;
  const { rows } = await client.query<LedgerApplyRow>("select * from ledger_apply($1::ledger_batch)", [
    encodeChanges([change]),
  ]);
  const outcome: AllocationOutcome = decodeOutcome(change, rows[0]!);
  if (outcome.kind !== "committed") throw new Refused({ kind: "refused", outcome });
}
