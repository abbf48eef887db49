import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { PastAttempt } from "../../core/tasks/failure-message.ts";
import type { Task } from "../../proto/gen/berth/cell.ts";

/** The attempts of the task that failed or were skipped, as a conductor that takes the task over learns them. */
export async function pastOf(store: CellStore, task: Task): Promise<readonly PastAttempt[]> {
  const attempts = await store.attempts(task.server?.uuid ?? "");
  return attempts.flatMap(({ taskId, selection, host, result, reason }): PastAttempt[] =>
    taskId === task.id && (result === "failed" || result === "skipped")
      ? [{ selection, host, result, reason: reason ?? "" }]
      : [],
  );
}
