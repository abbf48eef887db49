import { type GuestRecord, removeGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { removeMdevs } from "../../../adapters/qemu/host-devices.ts";
import { deviceName, type HostDevice } from "../../../core/pinning/host-device.ts";
import { foundRecord } from "./guest-dirs.ts";

/**
 * Removes the mediated devices of a guest whose QEMU is gone, if no other guest has them: a server that is resized on its own host keeps its devices. `records` reads
 * those of all guests. The guest's record goes with them, so that the last of several guests that are destroyed together finds itself to be the last. Throws if a device cannot be removed, or if it is unknown whether another guest has it.
 */
export function releaseDevices(
  dir: string,
  { records, sysroot }: { readonly records: () => readonly GuestRecord[]; readonly sysroot: string },
): void {
  const own = mdevsOf(dir);
  if (own.length === 0) return;
  const all = records().flatMap(({ pinning }) => pinning?.devices ?? []);
  const holders = (device: HostDevice) => all.filter((one) => deviceName(one) === deviceName(device)).length;
  removeMdevs(
    own.filter((device) => holders(device) === 1),
    sysroot,
  );
  // Nothing may wait between the look at the records and this.
  removeGuestRecord(dir);
}

function mdevsOf(dir: string): readonly HostDevice[] {
  return (foundRecord(dir)?.pinning?.devices ?? []).filter(({ kind }) => kind === "mdev");
}
