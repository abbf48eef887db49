import type { ImageCache } from "../../../adapters/qemu/image-cache.ts";
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
