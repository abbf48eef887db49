import { join } from "node:path";
import { copyDisk, endCopy, guestDiskBytes } from "../../../adapters/qemu/copy-disk.ts";
import { emptyDisk } from "../../../adapters/qemu/disk-image.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import type { SnapshotStore } from "../../../runtime/snapshot-store.ts";
import { SilentStorageError } from "../../../runtime/storage-gate.ts";
import { refuseRescued } from "./guest-power.ts";
import { ROOT_DISK } from "./machine-of-server.ts";

/** Where the empty file is made that a copy begins with. */
const EMPTY_COPY = "copy.qcow2.empty";

/**
 * Copies the guest's first disk, as it is now, into an image. The copy refers to no other file. A guest that runs goes on meanwhile; for one
 * that has no QEMU, a halted one is started for the copying and ended again. Does nothing if the image exists.
 */
export async function snapshotGuest(
  guest: QemuGuest,
  imageId: string,
  {
    images,
    program,
    signal,
  }: { readonly images: SnapshotStore; readonly program: string; readonly signal: AbortSignal },
): Promise<void> {
  if (await images.has(imageId)) return;
  refuseRescued(guest);
  const disk = guest.record.machine.disks.find(({ node }) => node === ROOT_DISK.node);
  if (disk === undefined) throw new QemuError("state", "the guest boots from a volume, of which images are not made");
  const state = await guest.state();
  if (state === "starting") throw new QemuError("state", "the guest's QEMU does not answer");
  const part = await images.nameFor(imageId);
  const { copiesTo } = guest.record;
  if (copiesTo !== undefined) await images.discard(copiesTo);
  // The record is written first, so that an agent that dies here leaves nothing that its next process does not know of.
  await guest.change({ copiesTo: part });
  try {
    if (state === "absent") await guest.boot(program, { isReceiving: false, hasDevices: false });
    signal.throwIfAborted();
    const bytes = await guestDiskBytes(guest, disk.node);
    const empty = await guest.storage.work(() => emptyDisk(join(guest.dir, EMPTY_COPY), bytes), { isSlow: true });
    await images.withFile(part, empty, (path) => copyDisk(guest, disk.node, path, signal));
    if (state === "absent") await guest.end();
    await images.publish(part, imageId, signal);
  } catch (error) {
    // If this fails, the record keeps the copy's name, and the guest's next order ends the copy.
    if (state === "absent") await guest.end();
    else await endCopy(guest);
    await discardCopy(guest, images, part);
    throw error;
  }
  await guest.change({ copiesTo: undefined });
}

/** Ends a copy that an earlier process of the agent began, and removes its file, or leaves it to a later order while the storage of images does not answer. */
export async function endOldSnapshot(guest: QemuGuest, images: SnapshotStore): Promise<void> {
  const { copiesTo, runningIn } = guest.record;
  if (copiesTo === undefined) return;
  const state = await guest.state();
  // A guest that was stopped had no QEMU before the copying.
  if (state === "prelaunch" && runningIn === null) await guest.end();
  else if (state !== "absent") await endCopy(guest);
  await discardCopy(guest, images, copiesTo);
}

/**
 * Removes the file of a copy that has ended. While the storage of images does not answer, the record keeps the name of the file: only another copy needs this storage, and the guest's
 * other orders do not wait for it.
 */
async function discardCopy(guest: QemuGuest, images: SnapshotStore, part: string): Promise<void> {
  try {
    await images.discard(part);
  } catch (error) {
    if (error instanceof SilentStorageError) return;
    throw error;
  }
  await guest.change({ copiesTo: undefined });
}
