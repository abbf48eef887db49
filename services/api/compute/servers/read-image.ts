import { DISK_FORMAT_KEY } from "../../../../core/scheduling/request/filters/image-type.ts";
import type { ImageCaller, ImageService, ServiceImage } from "../../../../core/stores/api/image-service.ts";
import type { Flavor } from "../../../../proto/gen/berth/shared.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest } from "../../http/fault.ts";
import type { ImageRule } from "../../image/image-rule.ts";

/** The images, and if servers are made from them now, the way in which hosts get their bits. */
export type ImagePort = Pick<ImageService, "find"> & Partial<Pick<ImageService, "provide">>;

/**
 * Returns the properties of a server's image, including its disk format. Refuses an image that is too big for the flavor, a deleted image, a
 * registered image that the caller may not see or that is still being made and, under the rule `registered`, an unknown one. The same holds for
 * the kernel and the RAM disk that the image names.
 */
export async function readImageProperties(
  imageRef: string,
  images: ImagePort | null,
  from: { readonly caller: ImageCaller; readonly flavor: Flavor; readonly rule: ImageRule },
): Promise<Readonly<Record<string, string>>> {
  if (imageRef === "" || images === null) return {};
  const judged = await judgeImage(imageRef, images, from);
  if ("refused" in judged) throw badRequest(judged.refused);
  if (judged.image === null) return {};
  refuseTooBig(judged.image, from.flavor);
  return imagePropertiesOf(judged.image);
}

/**
 * The properties of an image that is ready, including its disk format and, if its bits were uploaded, their hash, with which hosts check them. What a user
 * has written under these names does not count.
 */
export function imagePropertiesOf({ properties, diskFormat, sha512 }: ServiceImage): Record<string, string> {
  const { [DISK_FORMAT_KEY]: _format, os_hash_algo: _algorithm, os_hash_value: _hash, ...written } = properties;
  return {
    ...written,
    ...(diskFormat !== null && { [DISK_FORMAT_KEY]: diskFormat }),
    ...(sha512 !== null && { os_hash_algo: "sha512", os_hash_value: sha512 }),
  };
}

/** An image that may be used (null if it is unknown and may be used nevertheless), or the reason why it may not. */
export type JudgedImage = { readonly image: ServiceImage | null } | { readonly refused: string };

/** Judges whether the caller's servers may use an image, and the kernel and RAM disk that it names. */
export async function judgeImage(
  id: string,
  images: ImagePort,
  from: { readonly caller: ImageCaller; readonly rule: ImageRule },
): Promise<JudgedImage> {
  const judged = await judgeOne(id, images, from);
  if ("refused" in judged || judged.image === null) return judged;
  for (const name of ["kernel_id", "ramdisk_id"]) {
    const part = judged.image.properties[name] ?? "";
    const judgedPart = part === "" ? judged : await judgeOne(part, images, from);
    if ("refused" in judgedPart) return judgedPart;
  }
  return judged;
}

async function judgeOne(
  id: string,
  images: ImagePort,
  { caller, rule }: { readonly caller: ImageCaller; readonly rule: ImageRule },
): Promise<JudgedImage> {
  const image = await images.find(storedSpelling(id), caller);
  if (image === null && rule === "any") return { image };
  if (image === null || image === "deleted") return { refused: `Image ${id.slice(0, 100)} could not be found.` };
  if (image.status !== "active") return { refused: `Image ${id} is not active.` };
  await images.provide?.(image);
  return { image };
}

function refuseTooBig({ minRamMib, minDiskGib }: ServiceImage, flavor: Flavor): void {
  if (minRamMib > flavor.memoryMib)
    throw badRequest(
      `Flavor's memory is too small for requested image: it has ${flavor.memoryMib} MiB, the image asks for ${minRamMib}.`,
    );
  // A flavor with a disk size of 0 gives the image as much disk as it needs.
  if (flavor.diskGib > 0 && minDiskGib > flavor.diskGib)
    throw badRequest(
      `Flavor's disk is too small for requested image: it has ${flavor.diskGib} GiB, the image asks for ${minDiskGib}.`,
    );
}
