import {
  type NamedInterface,
  plugInterface,
  type ReleaseControl,
  unplugInterface,
} from "../../../adapters/qemu/interface-plugs.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { unlessAborted } from "../../../runtime/unless-aborted.ts";
import { changeableMonitor } from "./changeable-monitor.ts";
import { namedInterfaces, whyUnfit } from "./guest-interfaces.ts";

type CompletedGuest = Pick<QemuGuest, "record" | "state" | "execute" | "change" | "serveMetadata">;

/**
 * Completes changes of a running guest's interfaces that have no end, since an agent died in the middle or the guest was too late: the guest gets the interfaces that its record names and its
 * QEMU lacks, and is asked again to release those that it was asked to release, all of them at once. Leaves a guest alone that is suspended, is handed over or waits for another one, and an interface for
 * which QEMU has no slot: those get their interfaces at their next start. All interfaces are tried; then it rejects with the first one's error.
 *
 * When the signal is raised, it rejects at once, also while QEMU is silent. Then the guest and its record are no longer touched, apart from the command that QEMU was given last,
 * and the links to the metadata address that are being opened.
 */
export async function completeInterfaces(guest: CompletedGuest, control: ReleaseControl): Promise<void> {
  const { signal } = control;
  const monitor = await changeableMonitor(guest, signal);
  if (monitor === null) return;
  const { machine } = guest.record;
  const failures: QemuError[] = [];
  const isDone = async (change: Promise<void>): Promise<boolean> => {
    try {
      await change;
      return true;
    } catch (error) {
      if (!(error instanceof QemuError)) throw error;
      failures.push(error);
      return false;
    }
  };
  const named = namedInterfaces(machine);
  for (const one of named)
    if (one.isLeaving !== true && whyUnfit(machine, one) === null) await isDone(plugInterface(monitor, machine, one));
  await unlessAborted(guest.serveMetadata(), signal);
  const release = async (one: NamedInterface) =>
    (await isDone(unplugInterface(monitor, one.id, control))) ? [one.id] : [];
  const leaving = named.filter(({ isLeaving }) => isLeaving === true);
  // Nothing may go on beside what comes next, so the end of all is awaited.
  const ends = await Promise.allSettled(leaving.map(release));
  const released = new Set(ends.flatMap((end) => (end.status === "fulfilled" ? end.value : [])));
  signal.throwIfAborted();
  if (released.size > 0) {
    const { machine: present } = guest.record;
    const interfaces = namedInterfaces(present).filter(({ id }) => !released.has(id));
    await guest.change({ machine: { ...present, interfaces } });
  }
  const broken = ends.find((end) => end.status === "rejected");
  if (broken !== undefined) throw broken.reason;
  const [first] = failures;
  if (first !== undefined) throw first;
}
