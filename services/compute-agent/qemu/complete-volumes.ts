import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import type { VolumeFiles } from "../../../adapters/qemu/volume-files.ts";
import { plugVolume } from "../../../adapters/qemu/volume-plugs.ts";
import { unlessAborted } from "../../../runtime/unless-aborted.ts";
import { changeableMonitor } from "./changeable-monitor.ts";
import { recordedFile } from "./guest-volumes.ts";

type CompletedGuest = Pick<QemuGuest, "record" | "state" | "execute">;

/**
 * Gives a running guest the volumes that its record names and its QEMU lacks: an agent died after it had recorded one, or QEMU has released one after its host had told the cell that
 * the guest keeps it. Both are the server's. Leaves those alone that an agent was disconnecting or replacing when it died, since conductors repeat these orders until they
 * are answered. All volumes are tried; then it rejects with the first one's error. When the signal is raised, it rejects at once, also while a storage or QEMU is silent.
 */
export async function completeVolumes(
  guest: CompletedGuest,
  files: VolumeFiles | null,
  signal: AbortSignal,
): Promise<void> {
  const staying = (guest.record.volumes ?? []).filter((one) => one.isLeaving !== true && one.replacement === undefined);
  if (staying.length === 0) return;
  const monitor = await changeableMonitor(guest, signal);
  if (monitor === null) return;
  let first: QemuError | null = null;
  for (const volume of staying) {
    try {
      await plugVolume(monitor, volume, () => unlessAborted(recordedFile(files, volume), signal));
    } catch (error) {
      if (!(error instanceof QemuError)) throw error;
      first ??= error;
    }
  }
  if (first !== null) throw first;
}
