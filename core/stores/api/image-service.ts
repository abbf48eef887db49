import { type ImageRecord, type ImageStore, type ImageUpload, imageStatus } from "./image-store.ts";

/** The caller in whose name images are looked up or made. */
export interface ImageCaller {
  readonly projectId: string;
  readonly isAdmin: boolean;
  /** The caller's token of Keystone. Null where callers have none. */
  readonly token: string | null;
  /** `req-<uuid>`. */
  readonly requestId: string;
}

/** The status of an image under Glance's names. `other` stands for those in which an image cannot be used, such as `deactivated`. */
export type ServiceImageStatus = "queued" | "saving" | "active" | "deleted" | "killed" | "other";

/** An image as its service describes it to a caller who may see it. */
export interface ServiceImage {
  readonly id: string;
  readonly name: string | null;
  readonly status: ServiceImageStatus;
  readonly diskFormat: string | null;
  readonly containerFormat: string | null;
  readonly minDiskGib: number;
  readonly minRamMib: number;
  /** All other properties of the image, under Glance's names (`hw_cpu_policy`, `trait:CUSTOM_X`). */
  readonly properties: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** Size of its bits. Null if the service does not know it. */
  readonly bytes: number | null;
  /** Size of the disk that a guest sees. Null if the service does not know it. */
  readonly virtualBytes: number | null;
  /** SHA-512 of its bits in hexadecimal, which hosts check. Null if the service does not know it. */
  readonly sha512: string | null;
}

/** A description of an image that is made from a server's disk. Its id is that of the cell's task that copies the disk. */
export type SnapshotImage = ImageRecord & { readonly upload: ImageUpload };

/** The image of a shelved server that was asked to be unshelved. */
export type UnshelvedImage = ImageRecord & Required<Pick<ImageRecord, "shelvedServer" | "unshelveAskedAtMs">>;

export type ImageProperties = ServiceImage["properties"];

/** Why an image was not changed: it is not there, the caller may not do this to it, or its state does not allow it. */
export interface ImageRefusal {
  readonly kind: "gone" | "forbidden" | "conflict";
  readonly why: string;
}

/** Only images that have all of the given values. */
export interface ImageFilters {
  readonly status?: ServiceImageStatus;
  readonly minDiskGib?: number;
  readonly minRamMib?: number;
  /** Images that have been changed since then, in milliseconds since the epoch. */
  readonly changedSinceMs?: number;
  readonly properties?: ImageProperties;
}

export interface ImageListQuery {
  readonly name: string | null;
  readonly marker: string | null;
  readonly limit: number;
  readonly filters?: ImageFilters;
}

/** Whether an image has all values of a filter. */
export function passesFilters(image: ServiceImage, filters: ImageFilters): boolean {
  const { status, minDiskGib, minRamMib, changedSinceMs, properties = {} } = filters;
  return (
    (status === undefined || image.status === status) &&
    (minDiskGib === undefined || image.minDiskGib === minDiskGib) &&
    (minRamMib === undefined || image.minRamMib === minRamMib) &&
    (changedSinceMs === undefined || image.updatedAtMs >= changedSinceMs) &&
    Object.entries(properties).every(([name, value]) => image.properties[name] === value)
  );
}

/**
 * The service in which the images of servers are: the api's own images, or Glance. Both implementations pass test/contract/image-service. Operating
 * failures throw the implementation's error.
 */
export interface ImageService {
  /** The image, `deleted` if it is known that there was one, or null if there is none that the caller may see. */
  find(id: string, caller: ImageCaller): Promise<ServiceImage | "deleted" | null>;
  /**
   * Whether other services can read an image that a caller of this one has found: they do so in this service's own name. Absent where no other service can read any of the images.
   */
  isReadByOthers?(id: string): Promise<boolean>;
  /** Images that the caller may see, newest first, after the one with the id `marker`. `no-marker` if the caller may see no such image. */
  list(query: ImageListQuery, caller: ImageCaller): Promise<readonly ServiceImage[] | "no-marker">;
  /** The URL of the images in another service that keeps them, to which their ids are added. Null where this one keeps them. */
  imagesUrl(): Promise<string | null>;
  /** Deletes an image in the caller's name. */
  remove(id: string, caller: ImageCaller): Promise<{ readonly kind: "removed" } | ImageRefusal>;
  /** Replaces the properties of an image in the caller's name. `change` may be called again after a concurrent change. */
  changeProperties(
    id: string,
    change: (properties: ImageProperties) => ImageProperties,
    caller: ImageCaller,
  ): Promise<{ readonly kind: "changed"; readonly properties: ImageProperties } | ImageRefusal>;
  /** Sees to it that hosts get the bits of an active image, without waiting for it. May be repeated. */
  provide(image: ServiceImage): Promise<void>;
  /** Registers an image that has no bits yet, and remembers that it is being made. `ownedMax` limits the images of its owner; null for no limit. */
  begin(
    image: SnapshotImage,
    ownedMax: number | null,
    caller: ImageCaller,
  ): Promise<"created" | "id-taken" | "too-many">;
  /** At most `limit` images whose making has not ended, sorted by id, from the first id after `after` on (null: from the beginning). */
  unfinished(after: string | null, limit: number): Promise<readonly SnapshotImage[]>;
  /** Changes an image whose making has not ended. `change` may be called again after a concurrent change. Null if its making has ended. */
  changeUnfinished(id: string, change: (image: SnapshotImage) => SnapshotImage): Promise<SnapshotImage | null>;
  /** Notes that a cell works on the image. */
  markSaving(id: string): Promise<void>;
  /**
   * Called when the cell has copied the server's disk: the image gets its bits and becomes active, and backups that it replaces are removed. An image that
   * consists of snapshots gets its properties instead, and no bits; if its owner has deleted it meanwhile, its snapshots are to be dropped. May
   * be repeated, by several processes at once. It may end after the call; until then `unfinished` returns the image.
   */
  finish(image: SnapshotImage): Promise<void>;
  /**
   * Removes images of shelved servers that nothing needs any longer (`ImageStore.endedShelved`), a limited number of them in each call. One that cannot be
   * removed stays for a later call, and does not keep others.
   */
  endShelved(): Promise<void>;
  /** Notes that a server which has its disk from the image of its shelving is asked to be unshelved. Nothing happens if there is no such image. */
  noteUnshelving(id: string): Promise<void>;
  /** At most `limit` images about whose unshelving `noteUnshelving` has been told, sorted by id, from the first id after `after` on (null: from the beginning). */
  unshelving(after: string | null, limit: number): Promise<readonly UnshelvedImage[]>;
  /**
   * Called when the server is unshelved: users see the image no longer, unless it is protected. Its file stays, since the server's later moves may need it,
   * until `endShelved`. May be repeated.
   */
  hideUnshelved(id: string): Promise<void>;
  /** Called when the server is not unshelved: the image stays as it is. */
  keepShelved(id: string): Promise<void>;
  /** Removes an image that was begun and is not wanted. May be repeated. */
  abandon(id: string): Promise<void>;
}

/** Describes an image of the api's own. */
export function serviceImageOf(image: ImageRecord): ServiceImage {
  const { id, name, diskFormat, containerFormat, minDiskGib, minRamMib, properties } = image;
  const data = image.data === "awaited" ? undefined : image.data;
  return {
    ...{ id, name, status: imageStatus(image), diskFormat, containerFormat, minDiskGib, minRamMib, properties },
    ...{ createdAtMs: image.createdAtMs, updatedAtMs: image.updatedAtMs },
    ...{ bytes: data?.bytes ?? null, virtualBytes: data?.virtualBytes ?? null, sha512: data?.sha512 ?? null },
  };
}

/** Changes an image in a store whose making has not ended. Null if it has. */
export async function changeUnfinishedIn(
  store: Pick<ImageStore, "updateImage">,
  id: string,
  change: (image: SnapshotImage) => SnapshotImage,
): Promise<SnapshotImage | null> {
  let changed: SnapshotImage | null = null;
  const found = await store.updateImage(id, (image) => {
    changed = isUnfinished(image) ? change(image) : null;
    return changed ?? image;
  });
  return found === null ? null : changed;
}

const isUnfinished = (image: ImageRecord): image is SnapshotImage => image.upload !== undefined;
