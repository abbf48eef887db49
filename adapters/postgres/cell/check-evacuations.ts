import type { PoolClient } from "pg";
import type { EvacuationRefusal } from "../../../core/tasks/evacuation-rule.ts";
import type { StepWrite } from "../../../core/tasks/operation-step.ts";
import { queryRows } from "../client/store-query.ts";

/**
 * The positions of the writes that must not take a server from the host that it is evacuated from. Locks the rows of those hosts and of
 * their agents until the transaction ends. Cost: one round trip for each evacuation, none for any other write.
 */
export async function checkEvacuations(
  client: PoolClient,
  writes: readonly StepWrite[],
): Promise<ReadonlyMap<number, EvacuationRefusal>> {
  const refusals = new Map<number, EvacuationRefusal>();
  for (const [at, { evacuated }] of writes.entries()) {
    if (evacuated === undefined) continue;
    const [row] = await queryRows<{ refusal: EvacuationRefusal | null }>(client, {
      name: "cell_evacuation_refusal",
      text: "select cell_evacuation_refusal($1, $2, $3) as refusal",
      values: [evacuated.host, evacuated.unseenMs, evacuated.fenceWaived],
    });
    if (row?.refusal) refusals.set(at, row.refusal);
  }
  return refusals;
}
