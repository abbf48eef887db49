import type { Pool, PoolClient } from "pg";
import type { AllocationChange, AllocationOutcome } from "../../../core/ledger/allocation-change.ts";
import type { Reshape, ReshapeOutcome } from "../../../core/stores/cell/placement-store.ts";
import { inTransaction } from "../client/transaction.ts";
import { decodeOutcome, encodeChanges, type LedgerApplyRow } from "../ledger/encode-changes.ts";
import { writeInventories } from "./inventories.ts";
import { ask } from "./prepared.ts";

/** Carries a refusal out of the transaction, so that the transaction is rolled back. */
class Refused extends Error {
  readonly outcome: Exclude<ReshapeOutcome, { kind: "reshaped" }>;
  constructor(outcome: Exclude<ReshapeOutcome, { kind: "reshaped" }>) {
    super(outcome.kind);
    this.outcome = outcome;
  }
}

/**
 * Replaces inventories and allocations of many providers and consumers in one transaction, as upstream does: first every provider gets its
 * new inventories beside its old ones, then the allocations move, then the remaining old inventories are removed.
 *
 * Locks consumers, then providers by id. Providers that only the allocations name are locked after the inventories of the others. If that
 * causes a deadlock, Postgres chooses a victim, whose transaction is repeated.
 */
export async function writeReshape(pool: Pool, reshaping: Reshape): Promise<ReshapeOutcome> {
  try {
    return await inTransaction(pool, async (client): Promise<ReshapeOutcome> => {
      await lockConsumers(client, reshaping.change);
      await lockProviders(client, reshaping.inventories);
      for (const { provider, inventories } of reshaping.inventories) {
        if (inventories.size === 0) continue;
        const written = await writeInventories(client, provider, undefined, { mode: "widen", inventories });
        if (written.kind === "unknown-class") throw new Refused(written);
      }
      await applyChange(client, reshaping.change);
      for (const { provider, inventories } of reshaping.inventories) {
        const written = await writeInventories(client, provider, undefined, { mode: "replace", inventories });
        if (written.kind === "in-use") throw new Refused({ ...written, provider });
        if (written.kind === "unknown-class") throw new Refused(written);
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
  await ask(client, "select from consumers where uuid = any ($1::uuid[]) order by uuid for update", [uuids]);
}

async function lockProviders(client: PoolClient, wanted: Reshape["inventories"]): Promise<void> {
  const rows = await ask<{ uuid: string; generation: number }>(
    client,
    "select uuid, generation from resource_providers where uuid = any ($1::uuid[]) order by id for no key update",
    [wanted.map(({ provider }) => provider)],
  );
  const generations = new Map(rows.map((row) => [row.uuid, row.generation]));
  for (const { provider, expected: given } of wanted) {
    const actual = generations.get(provider);
    if (actual === undefined) throw new Refused({ kind: "unknown-provider", provider });
    if (actual !== given) throw new Refused({ kind: "generation-conflict", provider, actual, given });
  }
}

async function applyChange(client: PoolClient, change: AllocationChange): Promise<void> {
  if (change.steps.length === 0) return;
  const rows = await ask<LedgerApplyRow>(client, "select * from ledger_apply($1::ledger_batch)", [
    encodeChanges([change]),
  ]);
  const outcome: AllocationOutcome = decodeOutcome(change, rows[0]!);
  if (outcome.kind !== "committed") throw new Refused({ kind: "refused", outcome });
}
