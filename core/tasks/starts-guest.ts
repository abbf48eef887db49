import { isMove, type OperationKind } from "./operation-kinds.ts";
import type { ServerStatus } from "./server.ts";

const STARTING: readonly OperationKind[] = [
  "start",
  "restore",
  "resume",
  "hard-reboot",
  "rescue",
  "unrescue",
  "rebuild",
  "unshelve",
  "evacuate",
  "revert",
];
const RUNNING: readonly ServerStatus[] = ["ACTIVE", "PAUSED"];

/**
 * Whether an operation that begins in this status makes a guest run while the server has none that runs, or another guest than the one that
 * runs. Such an operation must not begin while another guest of the server is in quarantine (law 4). A move of a server that is ACTIVE counts,
 * since a restored database may name a home that the server has left, and the move's orders may be later than those that the guest there has obeyed.
 */
export function startsGuest(kind: OperationKind, status: ServerStatus): boolean {
  return RUNNING.includes(status) ? isMove(kind) : STARTING.includes(kind);
}
