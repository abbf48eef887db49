import type { Server } from "../../../../core/tasks/server.ts";
import { conflict } from "../../http/fault.ts";
import { busy, wrongState } from "../server-actions/action-target.ts";

/** The task state of a server that moves live, from the acceptance of the move on. */
const MIGRATING = "migrating";

/**
 * Refuses (409) a change of a live migration of a server that does not move live, whichever migration is named. As in Nova, a guest that is paused is not told to complete its move,
 * since its memory does not change. Source: check_instance_state of live_migrate_abort and live_migrate_force_complete in Nova's compute API.
 */
export function refuseUnlessMigrating(
  { uuid, status, taskState }: Pick<Server, "uuid" | "status" | "taskState">,
  signal: "abort" | "force",
): void {
  const subject = { uuid, action: signal === "abort" ? "abort live migration" : "force_complete" };
  if (signal === "force" && status !== "ACTIVE") throw wrongState(subject, status);
  if (taskState === MIGRATING) return;
  if (taskState !== null) throw busy(subject, taskState);
  throw conflict(`Instance ${uuid} is in an invalid state for '${subject.action}': it does not move live.`);
}
