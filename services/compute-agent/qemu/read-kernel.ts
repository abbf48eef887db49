import type { ExpectedImage, ImageCache } from "../../../adapters/qemu/image-cache.ts";
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

/**
 * What QEMU says of a kernel or RAM disk that it has read and cannot use, on whatever host. It says of an empty kernel that there is no such file.
 */
const UNUSABLE =
  /invalid kernel header|too old to load a ram disk|without PVH ELF Note|loading elf kernel|could not load kernel '[^']*': (No such file or directory|Success)|initrd is too large/i;

/**
 * The error of a QEMU that has not started, as a final one if QEMU cannot use the kernel or RAM disk of the guest's image, so that no other host is tried. It stays as it is unless
 * the copies of both on this host have the content that the cloud knows: others may be broken here alone. Cost: it reads both.
 */
export async function blameKernel(
  error: unknown,
  kernel: MachineKernel | null,
  {
    images,
    image,
    signal,
  }: {
    readonly images: Pick<ImageCache, "isAsKnown">;
    readonly image: Pick<ServerSpec, "imageProperties">;
    readonly signal: AbortSignal;
  },
): Promise<unknown> {
  const named = kernelImagesOf(image);
  if (kernel === null || named === null || !(error instanceof QemuError)) return error;
  if (error.code !== "not-started" || !UNUSABLE.test(error.message)) return error;
  // A storage that does not answer leaves QEMU's own words.
  const isKnown = (one: ExpectedImage, path: string | null) =>
    images.isAsKnown(one, path ?? "", signal).catch(() => false);
  if (!(await isKnown(named.kernel, kernel.path))) return error;
  if (named.ramdisk !== null && !(await isKnown(named.ramdisk, kernel.ramdisk))) return error;
  const words = "QEMU cannot boot the kernel of the image with its RAM disk";
  return new QemuError("image", `${words}: ${error.message}`, { isFinal: true, cause: error });
}
