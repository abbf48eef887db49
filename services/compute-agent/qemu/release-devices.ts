import { removeGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { removeMdevs } from "../../../adapters/qemu/host-devices.ts";
import { deviceName, type HostDevice } from "../../../core/pinning/host-device.ts";
import type { GuestDirs } from "./guest-dirs.ts";

/**
 * Removes the mediated devices of a guest whose QEMU is gone, if no other guest has them: a server that is resized on its own host keeps its devices. The guest's record goes with
 * them, so that the last of several guests that are destroyed together finds itself to be the last. So calls must not overlap. Rejects if a device cannot be removed, or if it is
 * unknown whether another guest has it.
 */
export async function releaseDevices(
  dir: string,
  { dirs, sysroot }: { readonly dirs: GuestDirs; readonly sysroot: string },
): Promise<void> {
  const record = await dirs.foundRecord(dir);
  const own = (record?.pinning?.devices ?? []).filter(({ kind }) => kind === "mdev");
  if (own.length === 0) return;
  const all = (await dirs.all()).flatMap(({ record: { pinning } }) => pinning?.devices ?? []);
  const holders = (device: HostDevice) => all.filter((one) => deviceName(one) === deviceName(device)).length;
  removeMdevs(
    own.filter((device) => holders(device) === 1),
    sysroot,
  );
  await dirs.storage.look(() => removeGuestRecord(dir));
}
