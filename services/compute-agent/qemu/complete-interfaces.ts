import { plugInterface, unplugInterface } from "../../../adapters/qemu/interface-plugs.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { queryMigration, UNDER_WAY } from "../../../adapters/qemu/transfer.ts";
import { STALLED } from "./found-power-of.ts";
import { namedInterfaces, whyUnfit } from "./guest-interfaces.ts";

/** Guests in these states have begun to run here, and their QEMU can change their devices. */
const CHANGEABLE: readonly string[] = ["running", "paused", STALLED];

/**
 * Completes the changes of a running guest's interfaces in the middle of which an agent died: the guest gets the interfaces that its record names and its QEMU lacks, and
 * is asked again to release those that it was asked to release. Leaves a guest alone that is suspended, is handed over or waits for another one, and an interface for
 * which QEMU has no slot: those get their interfaces at their next start. All interfaces are tried; then it rejects with the first one's error.
 *
 * Volumes need no such comparison: the orders for them are repeated until they are answered.
 */
export async function completeInterfaces(guest: QemuGuest, signal: AbortSignal): Promise<void> {
  const { isSuspended, receives, handedTo, machine } = guest.record;
  if (isSuspended || receives !== null || handedTo !== null) return;
  if (!CHANGEABLE.includes(await guest.state())) return;
  if (UNDER_WAY.includes((await queryMigration(guest)).status ?? "none")) return;
  const failures: QemuError[] = [];
  const unlessRefused = async (done: Promise<void>) => {
    await done.catch((error: unknown) => {
      if (!(error instanceof QemuError)) throw error;
      failures.push(error);
    });
  };
  for (const one of namedInterfaces(machine)) {
    signal.throwIfAborted();
    if (one.isLeaving !== true && whyUnfit(machine, one) === null)
      await unlessRefused(plugInterface(guest, machine, one));
  }
  await guest.serveMetadata();
  for (const one of namedInterfaces(machine)) {
    if (one.isLeaving !== true) continue;
    const release = async () => {
      await unplugInterface(guest, one.id, signal);
      const left = namedInterfaces(guest.record.machine).filter(({ id }) => id !== one.id);
      await guest.change({ machine: { ...guest.record.machine, interfaces: left } });
    };
    await unlessRefused(release());
  }
  const [first] = failures;
  if (first !== undefined) throw first;
}
