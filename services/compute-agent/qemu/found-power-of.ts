import type { QemuGuest, RunState } from "../../../adapters/qemu/qemu-guest.ts";
import { runsNow } from "../../../core/agent/runs-now.ts";
import { bootId } from "../../../runtime/boot-id.ts";
import type { FoundPower } from "../driver.ts";

/**
 * QEMU's state of a guest that it has halted because an access to a disk failed: mostly a write that found no room, but it may be any error of a volume. The guest
 * lost nothing, and repeats the access when it continues.
 */
export const STALLED = "io-error";

/** QEMU's state of a guest that it has halted for the end of a transfer, which it may still complete or give up. */
export const FINISHING = "finish-migrate";

/** Whether a guest in this state counts as running and stands still, because it was halted for its live move, which has not ended. */
export const standsStill = (guest: QemuGuest, state: RunState): boolean =>
  runsNow(foundPowerOf(guest, state)) && state !== "running" && state !== "suspended";

/** A guest that never ran here counts as stopped, also when it has received another one's memory. */
export function foundPowerOf(guest: QemuGuest, state: RunState): FoundPower {
  const { hasRun, handedTo, runningIn, isSuspended, rescue } = guest.record;
  if (!hasRun) return "stopped";
  if (isSuspended) return "suspended";
  const runningOrRescued = rescue === undefined ? "running" : "rescued";
  switch (state) {
    case FINISHING:
      return handedTo?.wasRunning === false ? "paused" : runningOrRescued;
    case "running":
    case "suspended":
      return runningOrRescued;
    case STALLED:
    case "paused":
      // A live move halts the guest at its switch-over, and a forced one earlier. A guest whose move is cancelled continues to run.
      return handedTo !== null && !handedTo.isDone && handedTo.wasRunning ? "running" : "paused";
    case "shutdown":
      // The driver ends the QEMU of a guest that it stops, and shuts a guest down before it copies its disks.
      return handedTo === null ? "shut-down" : "stopped";
    case "postmigrate":
      // QEMU gives a paused guest this state, too, when its move broke off, until the end of that move has paused it again.
      return handedTo !== null && !handedTo.isDone && !handedTo.wasRunning ? "paused" : "stopped";
    case "absent":
      // Of one that was handed over nothing is said: another host may have it.
      if (handedTo !== null || runningIn === null) return "stopped";
      return runningIn === bootId() ? "crashed" : "stopped-with-host";
    case "guest-panicked":
    case "internal-error":
      return "crashed";
    case "starting":
      // The QEMU has just begun or is about to end.
      return "unknown";
    default:
      return "stopped";
  }
}
