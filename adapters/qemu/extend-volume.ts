import { nodeBytes } from "./block-nodes.ts";
import { QemuError } from "./qemu-error.ts";
import type { QemuMonitor } from "./qemu-guest.ts";
import { QmpError } from "./qmp-error.ts";
import { usedNode } from "./volume-copies.ts";

/**
 * Lets a guest see that a volume has grown to this size. A volume never becomes smaller by this. Does nothing if the guest sees the size already, or if its QEMU
 * does not have the volume. Rejects with a QemuError if QEMU refuses it.
 */
export async function extendVolume(guest: QemuMonitor, volumeId: string, bytes: number): Promise<void> {
  const node = await usedNode(guest, volumeId);
  if (node === null) return;
  const present = await nodeBytes(guest, node);
  if (present === undefined) throw new QemuError("state", `QEMU does not say how large volume ${volumeId} is`);
  if (!Number.isSafeInteger(bytes) || bytes <= present) return;
  try {
    await guest.execute("block_resize", { "node-name": node, size: bytes });
  } catch (error) {
    if (!(error instanceof QmpError) || error.code !== "refused") throw error;
    throw new QemuError("storage", `volume ${volumeId} cannot be extended to ${bytes} bytes: ${error.message}`, {
      cause: error,
    });
  }
}
