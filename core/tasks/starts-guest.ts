import type { OperationKind } from "./operation-kinds.ts";
import type { ServerStatus } from "./server.ts";

const STARTING: readonly OperationKind[] = ["start", "hard-reboot", "rebuild", "unshelve", "evacuate"];
const RUNNING: readonly ServerStatus[] = ["ACTIVE", "PAUSED"];

/**
 * Whether an operation that begins in this status makes a guest run while the server has none that runs. Such an operation must not begin
 * while another guest of the server is in quarantine (law 4). An evacuated server's guest counts as gone.
 */
export function startsGuest(kind: OperationKind, status: ServerStatus): boolean {
  return STARTING.includes(kind) && (kind === "evacuate" || !RUNNING.includes(status));
}
