import type { Task } from "../../proto/gen/berth/cell.ts";
import type { AllocationRequest } from "../../proto/gen/berth/shared.ts";

/**
 * The allocation that a task claims for one of its selections, with the mapping of request groups to providers. Null when the task has no
 * such selection.
 */
export function claimedAllocation({ work }: Task, selection: number): AllocationRequest | null {
  if (work?.$case !== "build" && work?.$case !== "operate") return null;
  return work.value.selections[selection]?.allocation ?? null;
}
