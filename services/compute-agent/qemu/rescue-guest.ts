import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createDisk, virtualBytesOf } from "../../../adapters/qemu/disk-image.ts";
import type { BaseImage, ImageCache } from "../../../adapters/qemu/image-cache.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { RESCUE_DISK } from "../../../adapters/qemu/virtual-machine.ts";
import type { RescueImage } from "../../../proto/gen/berth/shared.ts";
import { endRescue, type PowerControl, startRescued, stopGuest } from "./guest-power.ts";
import { expectedImageOf, ROOT_DISK } from "./machine-of-server.ts";
import { readKernel } from "./read-kernel.ts";

/**
 * Stops the guest and boots it from a disk on the rescue image. The server's own disks follow that disk. The image is fetched first, so that a
 * guest is not stopped for an image that its host cannot use, or that would give it a larger disk than its own.
 */
export async function rescueGuest(
  guest: QemuGuest,
  image: RescueImage,
  control: Omit<PowerControl, "images"> & { readonly images: ImageCache },
): Promise<void> {
  const { images, signal } = control;
  const { rescue, receives } = guest.record;
  const state = await guest.state();
  if (rescue?.imageRef === image.imageRef && state === "running") return;
  if (receives !== null) throw new QemuError("state", "the guest waits for the disks or the memory of another one");
  const expected = expectedImageOf(image);
  if (expected === null) throw new QemuError("image", "the rescue names no image");
  const base = await images.image(expected, signal);
  await refuseLargeDisk(guest, base);
  const kernel = await readKernel(images, image, signal);
  signal.throwIfAborted();
  await stopGuest(guest, control);
  // A guest that never ran is only halted by that.
  await guest.end();
  await endRescue(guest);
  const path = join(guest.dir, RESCUE_DISK.file);
  await guest.storage.work(() => rm(path, { force: true }), { isSlow: true });
  await createDisk(path, base.virtualBytes, base);
  signal.throwIfAborted();
  // The record is written before the guest runs, so that an agent that dies here leaves a guest that is known as rescued.
  await guest.change({ rescue: { imageRef: image.imageRef, kernel }, handedTo: null });
  await startRescued(guest, control);
}

/**
 * Refuses an image whose disk is larger than the guest's own root disk, which has the size of the server's flavor or, if that has none, of its
 * image. The guest can fill the whole rescue disk, and nobody has counted more than its own on this host.
 */
async function refuseLargeDisk(guest: QemuGuest, { virtualBytes }: BaseImage): Promise<void> {
  const root = guest.record.machine.disks.find(({ node }) => node === ROOT_DISK.node);
  if (root === undefined)
    throw new QemuError("state", "the guest boots from a volume, so it has no local disk and gets none for a rescue");
  const bytes = await guest.storage.look(() => virtualBytesOf(join(guest.dir, root.file)));
  if (virtualBytes <= bytes) return;
  const words = `the rescue image has a disk of ${virtualBytes} bytes, the server's own has ${bytes}: take an image with a disk of at most this size`;
  throw new QemuError("image", words, { isFinal: true });
}
