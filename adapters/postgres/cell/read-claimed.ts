import type { Pool } from "pg";
import { parseAttemptId } from "../../../core/tasks/attempt-id.ts";
import { claimedAllocation } from "../../../core/tasks/claimed-allocation.ts";
import { Task } from "../../../proto/gen/berth/cell.ts";
import type { AllocationRequest } from "../../../proto/gen/berth/shared.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";

/** Cost: one round trip. */
export async function readClaimed(
  pool: Pool,
  attemptIds: readonly string[],
): Promise<readonly (AllocationRequest | null)[]> {
  const attempts = attemptIds.map((id) => parseAttemptId(id));
  const taskIds = onlyUuids(attempts.flatMap((attempt) => attempt?.taskId ?? []));
  const rows = await queryStored<{ id: string; payload: Buffer }>(pool, {
    name: "claimed",
    text: "select id, payload from tasks where id = any ($1)",
    values: [textArrayLiteral(taskIds)],
  });
  const tasks = new Map(rows.map((row) => [row.id, Task.decode(row.payload)]));
  return attempts.map((attempt) => {
    const task = attempt === null ? undefined : tasks.get(attempt.taskId);
    return attempt === null || task === undefined ? null : claimedAllocation(task, attempt.selection);
  });
}
