import { randomUUID } from "node:crypto";
import type { ImageRecord, ImageStore } from "../../../core/stores/api/image-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { storedSpelling } from "../http/canonical-uuid.ts";
import { badRequest, conflict, Fault, notFound } from "../http/fault.ts";
import type { Identity } from "../http/identity.ts";
import { refuseLargeImage } from "../http/spec-size.ts";
import { mayChange, mayShow } from "./image-access.ts";
import type { ImageCatalog } from "./image-catalog.ts";
import type { ChangedImage, CreateImageBody, PatchImageBody } from "./image-schemas.ts";
import { tooManyImages } from "./too-many-images.ts";

/**
 * What becomes of the bits of new images. `none`: this api stores none, and new images are active at once. `optional`: they are active at once, too, and may
 * get bits later. `required`: they are queued until their bits are uploaded.
 */
export type ImageDataRule = "none" | "optional" | "required";

export interface ImageDeps {
  readonly store: ImageStore;
  readonly catalog: Pick<ImageCatalog, "forget">;
  readonly clock: Clock;
  /** Maximum number of images of one project. Null for no limit. */
  readonly ownedMax: number | null;
  readonly data: ImageDataRule;
}

/** Fields of images, none of which is a property. */
export const isImageField = (name: string): boolean =>
  isFixedField(name) || name === "owner" || Object.hasOwn(UNSET, name);

/** Fields that only the Image API itself sets, beside those that begin with `os_hash_`. */
const FIXED: ReadonlySet<string> = new Set([
  ...["id", "status", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value", "os_hidden"],
  ...["created_at", "updated_at", "self", "file", "schema", "direct_url", "locations", "stores"],
]);
const FORMATS = [
  ["disk_format", "diskFormat"],
  ["container_format", "containerFormat"],
] as const;
/** The values of fields that were never set. */
const UNSET: ChangedImage = {
  name: null,
  visibility: "shared",
  protected: false,
  disk_format: null,
  container_format: null,
  min_disk: 0,
  min_ram: 0,
  tags: [],
};

/**
 * Registers an image. Only admins may make an image public or give it to another project. The id of a deleted image is taken, since hosts may
 * still have its file.
 */
export async function createImage(deps: ImageDeps, identity: Identity, body: CreateImageBody): Promise<ImageRecord> {
  const { id, ...fields } = body;
  for (const name of Object.keys(fields)) refuseFixed(name);
  const nowMs = deps.clock.now();
  const own = { id: id === undefined ? randomUUID() : storedSpelling(id), createdAtMs: nowMs, updatedAtMs: nowMs };
  const image: ImageRecord = {
    ...imageOf({ ...UNSET, owner: identity.projectId, ...fields }, own),
    ...(deps.data === "required" && { data: "awaited" }),
  };
  refuseOpening(image, null, identity);
  refuseLargeImage(image.properties);
  const outcome = await deps.store.createImage(image, deps.ownedMax);
  if (outcome === "id-taken") throw conflict(`Image ID ${image.id} already exists!`);
  if (outcome === "too-many") throw tooManyImages(413, image.owner, deps.ownedMax);
  deps.catalog.forget(image.id);
  return image;
}

export async function findImage(
  store: Pick<ImageStore, "image">,
  identity: Identity,
  id: string,
): Promise<ImageRecord> {
  const image = await store.image(storedSpelling(id));
  if (image === null || !mayShow(image, identity)) throw imageNotFound(id);
  return image;
}

/** Reads the marker of a list. An image that the caller may not see is refused like one that does not exist. */
export async function readMarker(
  store: Pick<ImageStore, "image">,
  identity: Identity,
  asked: string | undefined,
): Promise<ImageRecord | null> {
  if (asked === undefined) return null;
  const image = await store.image(storedSpelling(asked));
  if (image === null || !mayShow(image, identity)) throw markerNotFound(asked);
  return image;
}

/** Changes an image. `check` throws for fields that an image cannot have. */
export async function patchImage(
  deps: ImageDeps,
  identity: Identity,
  asked: { readonly id: string; readonly patch: PatchImageBody; readonly check: (fields: unknown) => ChangedImage },
): Promise<ImageRecord> {
  const { id } = await findOwn(deps.store, identity, asked.id);
  const changed = await deps.store.updateImage(id, (image) => {
    const fields = asked.check(patched(fieldsOf(image), asked.patch));
    const { createdAtMs } = image;
    const next: ImageRecord = {
      ...imageOf({ ...UNSET, owner: image.owner, ...fields }, { id, createdAtMs, updatedAtMs: deps.clock.now() }),
      ...(image.upload && { upload: image.upload }),
      ...(image.shelvedServer && { shelvedServer: image.shelvedServer }),
      ...(image.unshelveAskedAtMs !== undefined && { unshelveAskedAtMs: image.unshelveAskedAtMs }),
      ...(image.data && { data: image.data }),
    };
    refuseOtherFormat(next, image);
    refuseOpening(next, image, identity);
    refuseLargeImage(next.properties);
    return next;
  });
  if (changed === null) throw imageNotFound(asked.id);
  deps.catalog.forget(id);
  return changed;
}

/** Changes the tags of an image, which has each tag at most once. */
export async function changeTags(
  deps: ImageDeps,
  identity: Identity,
  asked: {
    readonly id: string;
    readonly check: (fields: unknown) => ChangedImage;
    readonly change: (tags: readonly string[]) => readonly string[];
  },
): Promise<void> {
  const { id } = await findOwn(deps.store, identity, asked.id);
  const changed = await deps.store.updateImage(id, (image) => {
    const { tags = [] } = asked.check({ ...UNSET, tags: [...new Set(asked.change(image.tags))] });
    return { ...image, tags, updatedAtMs: deps.clock.now() };
  });
  if (changed === null) throw imageNotFound(asked.id);
  deps.catalog.forget(id);
}

export async function deleteImage(deps: ImageDeps, identity: Identity, asked: string): Promise<void> {
  const { id, isProtected, upload } = await findOwn(deps.store, identity, asked);
  if (upload?.snapshots !== undefined) throw conflict(madeOfSnapshots(id));
  if (isProtected) throw new Fault(403, `Image ${id} is protected and cannot be deleted.`);
  if (!(await deps.store.deleteImage(id, deps.clock.now()))) throw imageNotFound(asked);
  deps.catalog.forget(id);
}

/** Why an image is not deleted whose row alone says which snapshots of volumes are being made for it. */
export const madeOfSnapshots = (id: string): string =>
  `Image ${id} is being made of snapshots of a server's volumes: delete it when its status is active. If the snapshots cannot be made, the image is removed with them.`;

/** Returns an image that the caller may change. Throws a 404 or a 403. */
export async function findOwn(store: ImageStore, identity: Identity, id: string): Promise<ImageRecord> {
  const image = await findImage(store, identity, id);
  if (!mayChange(image, identity)) throw new Fault(403, "You are not permitted to modify this image.");
  return image;
}

/** Returns the fields after all operations. If one operation fails, none is applied. */
function patched(fields: Readonly<Record<string, unknown>>, patch: PatchImageBody): Record<string, unknown> {
  const changed = new Map(Object.entries(fields));
  for (const { op, path, value } of patch) {
    const name = path.slice(1).replaceAll("~1", "/").replaceAll("~0", "~");
    refuseFixed(name);
    if (op !== "add" && !changed.has(name)) throw conflict(`Property ${name} does not exist.`);
    if (op === "remove" && Object.hasOwn(UNSET, name)) throw new Fault(403, `Property ${name} may not be removed.`);
    if (op === "remove") changed.delete(name);
    else if (value === undefined) throw badRequest(`Operation ${op} on ${name} has no value.`);
    else changed.set(name, value);
  }
  return Object.fromEntries(changed);
}

/** Whether only the Image API itself sets a field, so that no caller's property may have its name. */
export function isFixedField(name: string): boolean {
  return FIXED.has(name) || name.startsWith("os_hash_");
}

function refuseFixed(name: string): void {
  if (isFixedField(name)) throw new Fault(403, `Attribute '${name}' is read-only.`);
}

/** The formats of bits that were uploaded stay, as in Glance. */
function refuseOtherFormat(next: ImageRecord, before: ImageRecord): void {
  if (before.data === undefined || before.data === "awaited") return;
  for (const [name, field] of FORMATS)
    if (next[field] !== before[field])
      throw new Fault(403, `Attribute ${name} can be only replaced for a queued image.`);
}

function refuseOpening({ visibility, owner }: ImageRecord, before: ImageRecord | null, identity: Identity): void {
  if (identity.isAdmin) return;
  if (visibility === "public" && before?.visibility !== "public")
    throw new Fault(403, "You are not authorized to publicize images.");
  if (owner !== (before?.owner ?? identity.projectId))
    throw new Fault(403, "You are not permitted to set the owner of this image.");
}

function fieldsOf(image: ImageRecord): Record<string, unknown> {
  return {
    ...image.properties,
    name: image.name,
    visibility: image.visibility,
    protected: image.isProtected,
    disk_format: image.diskFormat,
    container_format: image.containerFormat,
    min_disk: image.minDiskGib,
    min_ram: image.minRamMib,
    tags: image.tags,
    owner: image.owner,
  };
}

function imageOf(
  fields: ChangedImage & { readonly owner: string },
  own: Pick<ImageRecord, "id" | "createdAtMs" | "updatedAtMs">,
): ImageRecord {
  const {
    name,
    visibility,
    protected: isProtected,
    disk_format,
    container_format,
    min_disk,
    min_ram,
    tags,
    owner,
    ...rest
  } = fields;
  return {
    ...own,
    name: name ?? null,
    owner,
    visibility: visibility ?? "shared",
    diskFormat: disk_format ?? null,
    containerFormat: container_format ?? null,
    minDiskGib: min_disk ?? 0,
    minRamMib: min_ram ?? 0,
    isProtected: isProtected ?? false,
    tags: [...new Set(tags)],
    properties: rest as Readonly<Record<string, string>>,
  };
}

export function markerNotFound(marker: string): Fault {
  return badRequest(`Marker ${marker.slice(0, 100)} could not be found.`);
}

export function imageNotFound(id: string): Fault {
  return notFound(`Failed to find image ${id.slice(0, 100)}.`);
}
