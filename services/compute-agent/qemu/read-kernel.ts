import type { ImageCache } from "../../../adapters/qemu/image-cache.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { MachineKernel } from "../../../adapters/qemu/virtual-machine.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { kernelImagesOf } from "./machine-of-server.ts";

/** The kernel of an image that names one, from the host's copies of images. */
export async function readKernel(
  images: ImageCache,
  image: Pick<ServerSpec, "imageProperties">,
  signal: AbortSignal,
): Promise<MachineKernel | null> {
  const named = kernelImagesOf(image);
  if (named === null) return null;
  const kernel = await images.image(named.kernel, signal);
  const ramdisk = named.ramdisk === null ? null : await images.image(named.ramdisk, signal);
  return { path: kernel.path, ramdisk: ramdisk?.path ?? null, commandLine: named.commandLine };
}

/** What QEMU says of a kernel or RAM disk that it cannot use, on whatever host. */
const UNUSABLE =
  /invalid kernel header|too old to load a ram disk|without PVH ELF Note|loading elf kernel|could not load kernel|initrd is too large/i;
/** Reasons of a host. QEMU says of a kernel that is cut off that there is no such file, so that is none. */
const HOSTS_FAULT = /Permission denied|Input\/output error|Cannot allocate/i;

/**
 * The error of a QEMU that has not started, as a final one if QEMU cannot use the guest's kernel or RAM disk, so that no other host is tried: their content was checked
 * when they were copied to this host.
 */
export function blameKernel(error: unknown, kernel: MachineKernel | null): unknown {
  if (kernel === null || !(error instanceof QemuError) || error.code !== "not-started") return error;
  if (!UNUSABLE.test(error.message) || HOSTS_FAULT.test(error.message)) return error;
  const words = "QEMU cannot boot the kernel of the image with its RAM disk";
  return new QemuError("image", `${words}: ${error.message}`, { isFinal: true, cause: error });
}
