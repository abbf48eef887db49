import { deleteTaskOf } from "../../../core/tasks/server-spec.ts";
import type { SchedulerEvents } from "../events.ts";
import type { CellLink } from "./cell-link.ts";

/**
 * Deletes a server in its cell; afterwards the cell refuses to create it. Returns `deleted` when the server is gone from the cell, and
 * `asked` when a conductor is going to delete it. Rejects when the cell's store could not be asked.
 */
export async function deleteInCell(
  link: CellLink,
  serverUuid: string,
  by: { readonly newId: () => string; readonly events: Pick<SchedulerEvents, "publishFailed"> },
): Promise<"deleted" | "asked"> {
  const outcome = await link.requestDelete(deleteTaskOf(by.newId(), serverUuid));
  if (outcome.kind === "deleted") return "deleted";
  try {
    await link.publish(outcome.task, {});
  } catch (error) {
    // The task is stored, so the cell's conductors find it without the message.
    by.events.publishFailed(outcome.task.id, link.name, error);
  }
  return "asked";
}
