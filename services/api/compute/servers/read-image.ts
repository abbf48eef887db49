import { DISK_FORMAT_KEY } from "../../../../core/scheduling/request/filters/image-type.ts";
import type { ImageCaller, ImageService, ServiceImage } from "../../../../core/stores/api/image-service.ts";
import type { Flavor } from "../../../../proto/gen/berth/shared.ts";
import { type KnownCall, mayDo } from "../../http/call.ts";
import { canonicalUuid, storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, Fault } from "../../http/fault.ts";
import type { ImageRule } from "../../image/image-rule.ts";
import { type DeviceMapping, hasNoDisk, readImageMapping } from "./image-mapping.ts";

/** The images, and if servers are made from them now, the way in which hosts and other services get their bits. */
export type ImagePort = Pick<ImageService, "find" | "isReadByOthers"> & Partial<Pick<ImageService, "provide">>;

/** The image of a server as far as the server needs it. */
export interface ReadImage {
  readonly properties: Readonly<Record<string, string>>;
  /** The images of which a host needs the bits: the image, its kernel and its RAM disk, as far as they are registered. */
  readonly needed: readonly ServiceImage[];
}

const GIB = 2 ** 30;

/**
 * Returns the properties of a server's image, including its disk format, and what hosts need of it (`provideImages`). Refuses an image that is too big for the flavor, a deleted image, a
 * registered image that the caller may not see or that is still being made and, under the rule `registered`, an unknown one. The same holds for
 * the kernel and the RAM disk that the image names. The refusal of an unknown one begins with the words `missing`.
 */
export async function readImage(
  imageRef: string,
  images: Pick<ImagePort, "find"> | null,
  from: {
    readonly caller: ImageCaller;
    readonly flavor: Flavor;
    readonly rule: ImageRule;
    readonly missing?: string;
  },
): Promise<ReadImage> {
  if (imageRef === "" || images === null) return { properties: {}, needed: [] };
  const judged = await judgeImage(imageRef, images, from);
  if ("refused" in judged) throw imageRefused(judged, from.missing);
  const { image, needed } = judged;
  if (image === null) return { properties: {}, needed };
  refuseTooBig(image, from.flavor);
  refuseLargeDisk(image, from.flavor);
  return { properties: imagePropertiesOf(image), needed };
}

/** How Nova says that there is no image of which a server is to be made. */
const NO_SUCH_IMAGE = "Can not find requested image";

/** The refusal of a call that names an image which may not be used. For an image that is not found it says so in Nova's words, and then which one. */
export function imageRefused({ refused, isMissing }: RefusedImage, missing = NO_SUCH_IMAGE): Fault {
  return badRequest(isMissing ? `${missing}. ${refused}` : refused);
}

/** The image that a call names, if it gives its servers devices of their own. Null for any other, and for one that may not be used, which `readImage` refuses. */
export async function findMappedImage(
  imageRef: string,
  images: Pick<ImagePort, "find"> | null,
  caller: ImageCaller,
): Promise<{ readonly image: ServiceImage; readonly devices: readonly DeviceMapping[] } | null> {
  if (imageRef === "" || images === null) return null;
  const image = await images.find(storedSpelling(imageRef), caller);
  if (image === null || image === "deleted" || image.status !== "active") return null;
  const devices = readImageMapping(image);
  return devices.length === 0 ? null : { image, devices };
}

/**
 * Sees to it that hosts get the bits of images. To be called after every check of a call, since fetching them costs much, and before the call is
 * accepted, since a host then looks for them.
 */
export async function provideImages(images: ImagePort | null, needed: readonly ServiceImage[]): Promise<void> {
  for (const image of needed) await images?.provide?.(image);
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

/** An image that may be used (null if it is unknown and may be used nevertheless) with all images that it needs, or the reason why it may not. */
export type JudgedImage = Judged<{ readonly needed: readonly ServiceImage[] }>;
type Judged<More = unknown> = ({ readonly image: ServiceImage | null } & More) | RefusedImage;

interface RefusedImage {
  readonly refused: string;
  /** There is no such image as far as the caller may know. */
  readonly isMissing: boolean;
}

/** Judges whether the caller's servers may use an image, and the kernel and RAM disk that it names. */
export async function judgeImage(
  id: string,
  images: Pick<ImagePort, "find">,
  from: { readonly caller: ImageCaller; readonly rule: ImageRule },
): Promise<JudgedImage> {
  const judged = await judgeOne(id, images, from);
  if ("refused" in judged) return judged;
  if (judged.image === null) return { image: null, needed: [] };
  const parts = await judgeParts(judged.image.properties, images, from);
  return "refused" in parts ? parts : { image: judged.image, needed: [judged.image, ...parts.needed] };
}

/** Judges whether the caller's servers may use the kernel and the RAM disk that an image with these properties names. */
export async function judgeParts(
  properties: Readonly<Record<string, string>>,
  images: Pick<ImagePort, "find">,
  from: { readonly caller: ImageCaller; readonly rule: ImageRule },
): Promise<{ readonly needed: readonly ServiceImage[] } | RefusedImage> {
  const needed: ServiceImage[] = [];
  for (const name of ["kernel_id", "ramdisk_id"]) {
    const part = properties[name] ?? "";
    if (part === "") continue;
    const judged = await judgeOne(part, images, from);
    if ("refused" in judged) return judged;
    if (judged.image !== null) needed.push(judged.image);
  }
  return { needed };
}

async function judgeOne(
  id: string,
  images: Pick<ImagePort, "find">,
  { caller, rule }: { readonly caller: ImageCaller; readonly rule: ImageRule },
): Promise<Judged> {
  const image = await images.find(storedSpelling(id), caller);
  // Hosts find unknown images by the names of their files, and a name with an ending would be the file of another image.
  if (image === null && rule === "any" && canonicalUuid(id) !== null) return { image };
  if (image === null || image === "deleted")
    return { refused: `Image ${id.slice(0, 100)} could not be found.`, isMissing: true };
  if (image.status !== "active") return { refused: `Image ${id} is not active.`, isMissing: false };
  if (hasNoDisk(image))
    return {
      refused: `Image ${id} consists of snapshots of volumes, and no disk can be made of it: create a server from it (imageRef), which boots from new volumes.`,
      isMissing: false,
    };
  return { image };
}

/**
 * Refuses (403) a local root disk of a size that only its image decides, unless the policy lets the caller have one. Source: `_validate_flavor_image_nostatus` of Nova's
 * compute API.
 */
export function refuseZeroDisk(call: KnownCall, { diskGib }: Flavor): void {
  if (diskGib === 0 && !mayDo(call, "servers:create:zero_disk_flavor"))
    throw new Fault(403, "Only volume-backed servers are allowed for flavors with zero disk.");
}

/** Refuses a flavor with less memory than an image asks for (400). */
export function refuseLittleMemory(minRamMib: number, flavor: Flavor): void {
  if (minRamMib > flavor.memoryMib)
    throw badRequest(
      `Flavor's memory is too small for requested image: it has ${flavor.memoryMib} MiB, the image asks for ${minRamMib}.`,
    );
}

function refuseTooBig({ minRamMib, minDiskGib }: ServiceImage, flavor: Flavor): void {
  refuseLittleMemory(minRamMib, flavor);
  // A flavor with a disk size of 0 gives the image as much disk as it needs.
  if (flavor.diskGib > 0 && minDiskGib > flavor.diskGib)
    throw badRequest(
      `Flavor's disk is too small for requested image: it has ${flavor.diskGib} GiB, the image asks for ${minDiskGib}.`,
    );
}

/** The size of the disk that a guest sees of an image; null if nobody knows it before a host has looked at the image. */
export const diskBytesOf = ({ virtualBytes, diskFormat, bytes }: ServiceImage): number | null =>
  virtualBytes ?? (diskFormat === "raw" ? bytes : null);

/** The refusal (400) of an image for which a disk is too small. Source of the words: `FlavorDiskSmallerThanImage` of Nova. */
export const diskTooSmall = (sizes: { readonly disk: number; readonly image: number }, owner = "Flavor"): Fault =>
  badRequest(
    `${owner}'s disk is too small for requested image. ${owner} disk is ${sizes.disk} bytes, image is ${sizes.image} bytes.`,
  );

/** Refuses an image that has more bytes, or whose guests see more, than the flavor's disk (400). A host would refuse the second, too, after a claim. */
function refuseLargeDisk(image: ServiceImage, { diskGib }: Flavor): void {
  const sizes = { disk: diskGib * GIB, image: Math.max(image.bytes ?? 0, diskBytesOf(image) ?? 0) };
  if (sizes.disk > 0 && sizes.image > sizes.disk) throw diskTooSmall(sizes);
}
