import type { ServiceImage } from "../../../../core/stores/api/image-service.ts";
import { PROPERTIES_OF_FILE } from "../../../../core/tasks/server-spec.ts";
import { badRequest } from "../../http/fault.ts";
import type { FoundVolume } from "./find-volumes.ts";
import { MAPPING_PROPERTIES } from "./image-mapping.ts";
import { imageMissing } from "./read-block-devices.ts";
import {
  type ImagePort,
  imagePropertiesOf,
  imageRefused,
  judgeImage,
  judgeParts,
  type ReadImage,
  readImage,
  refuseLittleMemory,
} from "./read-image.ts";

/** The attributes of an image that Cinder keeps with a volume, and that Nova does not count as properties for the server. Source: `VIM_IMAGE_ATTRIBUTES` and `get_bdm_image_metadata` of Nova. */
const ATTRIBUTES: ReadonlySet<string> = new Set([
  ...["image_id", "image_name", "container_format", "checksum", "size", "min_disk", "min_ram", "status", "owner"],
  ...["visibility", "protected", "created_at", "updated_at", "signature_verified"],
]);

/**
 * Reads the image whose properties count for the scheduling and the hardware of a new server: the one that the call names, or for a server that boots from a
 * volume, the one that the volume was or will be filled from, or whose devices the server has. Refuses (400) unknown images of new volumes, and an image for which the flavor or the new boot
 * volume is too small.
 */
export async function readBootImage(
  imageRef: string,
  images: Pick<ImagePort, "find"> | null,
  from: Parameters<typeof readImage>[2] & {
    readonly volumes: readonly FoundVolume[];
    /** The image whose devices the server has. Null for none. */
    readonly mapped: ServiceImage | null;
  },
): Promise<ReadImage> {
  const filled = new Map<string, ServiceImage | null>();
  for (const { wanted } of from.volumes)
    if (wanted.source.kind === "image" && images !== null) {
      const judged = await judgeImage(wanted.source.id, images, from);
      if ("refused" in judged) throw judged.isMissing ? imageMissing(wanted.source.id) : imageRefused(judged);
      filled.set(wanted.source.id, judged.image);
    }
  const root = from.volumes.find(({ wanted }) => wanted.isRoot);
  if (root === undefined) return readImage(imageRef, images, from);
  const { source } = root.wanted;
  const sizeGib = root.wanted.sizeGib ?? root.volume?.sizeGib ?? 0;
  // What the image of the devices says counts also if the call names another volume for the server to boot from.
  const image = from.mapped ?? (source.kind === "image" ? (filled.get(source.id) ?? null) : null);
  if (image !== null) {
    refuseLittleMemory(image.minRamMib, from.flavor);
    if (image.minDiskGib > sizeGib)
      throw badRequest(
        `Volume is smaller than the minimum size specified in image metadata. Volume size is ${sizeGib * GIB} bytes, minimum size is ${image.minDiskGib * GIB} bytes.`,
      );
  } else refuseLittleMemory(Number(root.imageProperties.min_ram ?? 0) || 0, from.flavor);
  const written = Object.entries(image === null ? root.imageProperties : imagePropertiesOf(image));
  const properties = Object.fromEntries(
    written.filter(([name]) => !PROPERTIES_OF_FILE.has(name) && !ATTRIBUTES.has(name) && !MAPPING_PROPERTIES.has(name)),
  );
  // The guest boots with the kernel that the image names, also if the image has become a volume.
  const parts = images === null ? { needed: [] } : await judgeParts(properties, images, from);
  if ("refused" in parts) throw imageRefused(parts);
  return { properties, needed: parts.needed };
}

const GIB = 2 ** 30;
