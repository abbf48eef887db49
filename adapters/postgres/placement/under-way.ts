import type { Pool } from "pg";
import type { AllocationChange } from "../../../core/ledger/allocation-change.ts";
import { type ConsumerUuid, consumerUuid } from "../../../core/ledger/ids.ts";
import type { PlacementChangeOutcome } from "../../../core/stores/cell/placement-store.ts";
import { ask } from "./prepared.ts";

type UnderWay = Extract<PlacementChangeOutcome, { readonly kind: "under-way" }>;

/**
 * For each change, whether it may be written. A change is refused if one of its consumers is a move of the cell that holds something, or a
 * server that a task works on, because the task relies on these allocations to continue or to go back. A database that only serves the
 * Placement API has no such consumers, whatever their types. Cost: one round trip, with two look-ups for each consumer.
 */
export async function refuseUnderWay(
  pool: Pool,
  changes: readonly AllocationChange[],
): Promise<readonly (UnderWay | null)[]> {
  const consumersOf = ({ steps }: AllocationChange): readonly ConsumerUuid[] =>
    steps.flatMap((step) => (step.kind === "replace" ? [step.consumer] : [step.from, step.to]));
  const rows = await ask<{ uuid: string; what: string }>(
    pool,
    `select m.uuid, 'move' as what from migrations m where m.uuid = any ($1::uuid[]) and (not m.ended or m.holds_source)
     union all
     select t.server_uuid, coalesce(t.operation, t.kind) from tasks t
     where t.server_uuid = any ($1::uuid[]) and t.outcome is null`,
    [[...new Set(changes.flatMap(consumersOf))]],
  );
  const busy = new Map(rows.map(({ uuid, what }) => [consumerUuid(uuid), what]));
  return changes.map((change) => {
    const consumer = consumersOf(change).find((one) => busy.has(one));
    return consumer === undefined ? null : { kind: "under-way", consumer, what: busy.get(consumer) ?? "" };
  });
}
