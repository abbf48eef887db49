import type { OperationKind } from "./operation-kinds.ts";
import type { Server } from "./server.ts";

/** How often a cell is asked to restore a server before the restoring is given up. */
export const RESTORE_TRIES_MAX = 3;

/** The next step towards the aim of a soft deletion. `done`: the server is as it should be. `abandon`: it stays deleted softly. */
export type SoftDeletionStep =
  | { readonly kind: "begin"; readonly operation: OperationKind }
  | { readonly kind: "wait" | "done" | "abandon" };

const DONE: SoftDeletionStep = { kind: "done" };

/**
 * Decides by the server's state in its cell. A server is stopped before it counts as deleted softly; a resize that waits is confirmed first, as in
 * Nova, and a rescue is ended, because only the server's own guest can be restored. `tries` counts the operations that were begun for the aim.
 */
export function nextSoftDeletionStep(
  aim: "deleted" | "restored",
  { status, taskState, host }: Pick<Server, "status" | "taskState" | "host">,
  tries: number,
): SoftDeletionStep {
  if (status === "DELETED") return DONE;
  if (taskState !== null) return { kind: "wait" };
  const isStopped = status === "SOFT_DELETED";
  if (aim === "restored") {
    if (!isStopped) return DONE;
    return tries < RESTORE_TRIES_MAX ? { kind: "begin", operation: "restore" } : { kind: "abandon" };
  }
  // A server without a host has no guest that could be stopped.
  if (isStopped || host === null) return DONE;
  if (status === "VERIFY_RESIZE") return { kind: "begin", operation: "confirm" };
  return { kind: "begin", operation: status === "RESCUE" ? "unrescue" : "soft-delete" };
}
