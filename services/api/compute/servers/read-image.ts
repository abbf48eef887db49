import { DISK_FORMAT_KEY } from "../../../../core/scheduling/request/filters/image-type.ts";
import type { ImageRecord } from "../../../../core/stores/api/image-store.ts";
import type { Flavor } from "../../../../proto/gen/berth/shared.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest } from "../../http/fault.ts";
import type { Identity } from "../../http/identity.ts";
import { mayShow } from "../../image/image-access.ts";
import type { ImageCatalog } from "../../image/image-catalog.ts";
import type { ImageRule } from "./image-rule.ts";

/**
 * Returns the properties of a server's image, including its disk format. Refuses an image that is too big for the flavor, a deleted image, a
 * registered image that the caller may not see or that is still being made and, under the rule `registered`, an unknown one. The same holds for
 * the kernel and the RAM disk that the image names.
 */
export async function readImageProperties(
  imageRef: string,
  images: Pick<ImageCatalog, "find"> | null,
  from: { readonly identity: Identity; readonly flavor: Flavor; readonly rule: ImageRule },
): Promise<Readonly<Record<string, string>>> {
  if (imageRef === "" || images === null) return {};
  const record = await findUsable(imageRef, images, from);
  if (record === null) return {};
  refuseTooBig(record, from.flavor);
  for (const name of ["kernel_id", "ramdisk_id"]) {
    const id = record.properties[name] ?? "";
    if (id !== "") await findUsable(id, images, from);
  }
  return { ...record.properties, ...(record.diskFormat !== null && { [DISK_FORMAT_KEY]: record.diskFormat }) };
}

/** Returns the image, or null if it is unknown and may be used nevertheless. Throws 400 for an image that the caller's servers may not use. */
async function findUsable(
  id: string,
  images: Pick<ImageCatalog, "find">,
  { identity, rule }: { readonly identity: Identity; readonly rule: ImageRule },
): Promise<ImageRecord | null> {
  const record = await images.find(storedSpelling(id));
  if (record === null && rule === "any") return null;
  if (record === null || record === "deleted" || !mayShow(record, identity))
    throw badRequest(`Image ${id.slice(0, 100)} could not be found.`);
  if (record.upload !== undefined) throw badRequest(`Image ${id} is not active.`);
  return record;
}

function refuseTooBig({ minRamMib, minDiskGib }: ImageRecord, flavor: Flavor): void {
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
