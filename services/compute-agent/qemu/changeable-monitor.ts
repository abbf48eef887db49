import type { QemuGuest, QemuMonitor } from "../../../adapters/qemu/qemu-guest.ts";
import { queryMigration, UNDER_WAY } from "../../../adapters/qemu/transfer.ts";
import { unlessAborted } from "../../../runtime/unless-aborted.ts";
import { STALLED } from "./found-power-of.ts";

/** Guests in these states have begun to run here, and their QEMU can change their devices. */
const CHANGEABLE: readonly string[] = ["running", "paused", STALLED];

/**
 * The monitor of a guest whose devices may be changed between its orders. Null for a guest without a QEMU that runs it, and for one that is suspended, is handed over or waits for
 * another one: those get what they lack at their next start. When the signal is raised, each command rejects at once, also while QEMU is silent; only the last one may still be carried out.
 */
export async function changeableMonitor(
  guest: Pick<QemuGuest, "record" | "state" | "execute">,
  signal: AbortSignal,
): Promise<QemuMonitor | null> {
  const { isSuspended, receives, handedTo } = guest.record;
  if (isSuspended || receives !== null || handedTo !== null) return null;
  // The state would connect an agent that ends to QEMU again, which serves one at a time.
  signal.throwIfAborted();
  const monitor: QemuMonitor = {
    async execute(...command) {
      signal.throwIfAborted();
      return unlessAborted(guest.execute(...command), signal);
    },
  };
  if (!CHANGEABLE.includes(await unlessAborted(guest.state(), signal))) return null;
  return UNDER_WAY.includes((await queryMigration(monitor)).status ?? "none") ? null : monitor;
}
