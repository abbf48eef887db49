export const IMAGE_VISIBILITIES = ["public", "private", "shared", "community"] as const;
export type ImageVisibility = (typeof IMAGE_VISIBILITIES)[number];

/** The snapshots of a server's volumes of which an image consists, while it is being made. In Cinder, the image's id is among the metadata of each snapshot. */
export interface ImageSnapshots {
  /**
   * `making`: a call asks Cinder for the snapshots, one after the other. `made`: Cinder has been asked for all of them, and the properties of the image name
   * them. `dropping`: the image cannot be made, so the snapshots are being deleted.
   */
  readonly phase: "making" | "made" | "dropping";
  /** The volumes, each once. */
  readonly volumeIds: readonly string[];
  /** The snapshots, once all are known. */
  readonly snapshotIds: readonly string[];
  /** Until then, in milliseconds since the epoch, Cinder may make a further snapshot for a call whose process ended, or did not get Cinder's answer. */
  readonly lateUntilMs: number;
  /** The call that asked for the image, which the server's actions list. */
  readonly requestId: string;
  /** Why the image cannot be made, and what to do. Null unless it is being dropped. */
  readonly why: string | null;
}

/** The making of an image from a server's disk or volumes, which has not ended yet. */
export interface ImageUpload {
  /** `queued`: accepted. `saving`: the server's cell works on it. */
  readonly state: "queued" | "saving";
  readonly serverUuid: string;
  /** Only for a backup: how many backups of its type the server keeps, counting this one. */
  readonly rotation: number | null;
  /** Only for an image of a server that boots from a volume, which has no bits. */
  readonly snapshots?: ImageSnapshots;
}

/** The image whose snapshots are to be deleted. `lateUntilMs` is null if Cinder makes no further ones. What is being dropped already stays as it is. */
export function withSnapshotsDropped<Image extends { readonly upload?: ImageUpload }>(
  image: Image,
  { why, lateUntilMs }: { readonly why: string; readonly lateUntilMs: number | null },
): Image {
  const { upload } = image;
  if (upload?.snapshots === undefined || upload.snapshots.phase === "dropping") return image;
  const { snapshots } = upload;
  const late = { lateUntilMs: lateUntilMs ?? 0 };
  return { ...image, upload: { ...upload, snapshots: { ...snapshots, ...late, phase: "dropping", why } } };
}

/** Facts about the bits of an image that were uploaded to the Image API. */
export interface ImageData {
  readonly bytes: number;
  /** In hexadecimal, as `checksum` shows it. */
  readonly md5: string;
  /** In hexadecimal. Hosts refuse bits with another hash. */
  readonly sha512: string;
  /** Size of the disk that a guest sees. Null for formats that do not state it. */
  readonly virtualBytes: number | null;
}

/** An image as far as scheduling needs it: its name, its minimum sizes and its properties. Its bits are files beside the database. */
export interface ImageRecord {
  readonly id: string;
  readonly name: string | null;
  readonly owner: string;
  readonly visibility: ImageVisibility;
  readonly diskFormat: string | null;
  readonly containerFormat: string | null;
  readonly minDiskGib: number;
  readonly minRamMib: number;
  readonly isProtected: boolean;
  readonly tags: readonly string[];
  /** All other properties of the image, under Glance's names (`hw_cpu_policy`, `trait:CUSTOM_X`). */
  readonly properties: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** Only while the image is being made from a server's disk. */
  readonly upload?: ImageUpload;
  /** The server whose disk this image was made of when the server was shelved. Set once, when the image is created. */
  readonly shelvedServer?: string;
  /** When that server was last asked to be unshelved, until it is known what has become of that. */
  readonly unshelveAskedAtMs?: number;
  /** `awaited`: nobody has uploaded its bits yet. Absent for an image whose bits the Image API does not store. */
  readonly data?: ImageData | "awaited";
}

/** The status of an image under Glance's names. Servers are made from active images only. */
export function imageStatus({ upload, data }: ImageRecord): "queued" | "saving" | "active" {
  if (upload !== undefined) return upload.state;
  return data === "awaited" ? "queued" : "active";
}

export interface ImageQuery {
  /** Selects the images of this project and those that are open to all. Null selects every image. */
  readonly visibleTo: string | null;
  /** Null selects images of any name. */
  readonly name: string | null;
  /** Null selects images of any visibility. */
  readonly visibility?: string | null;
  /** Only the community images of this project. Absent selects those of all. */
  readonly communityOf?: string;
  /** Only images that have all of these properties. */
  readonly properties?: Readonly<Record<string, string>>;
  /** Only images that follow this one in the list. Null starts at the beginning. */
  readonly marker: string | null;
  readonly limit: number;
}

/**
 * The images that servers may be made from. Both implementations (Postgres, in-memory) pass test/contract/image-store. Operating failures
 * throw the store's error.
 */
export interface ImageStore {
  /**
   * Stores a new image, unless its owner has `ownedMax` images already (null for no limit). The id of a deleted image stays taken. Concurrent
   * calls are counted exactly.
   */
  createImage(image: ImageRecord, ownedMax: number | null): Promise<"created" | "id-taken" | "too-many">;
  /** The image. Null if there is none or it was deleted. */
  image(id: string): Promise<ImageRecord | null>;
  /** Returns those ids whose images were deleted, in any order. */
  deletedImages(ids: readonly string[]): Promise<readonly string[]>;
  /** Images, newest first. Images of the same time are sorted by id. */
  images(query: ImageQuery): Promise<readonly ImageRecord[]>;
  /** At most `limit` images whose upload has not ended, sorted by id, from the first id after `after` on (null: from the beginning). */
  uploads(after: string | null, limit: number): Promise<readonly ImageRecord[]>;
  /**
   * Replaces the image with the result of `change`, which is called again after a concurrent update. The server that it was shelved for stays. Returns null when there is no such
   * image.
   */
  updateImage(id: string, change: (image: ImageRecord) => ImageRecord): Promise<ImageRecord | null>;
  /**
   * The ids of at most `limit` finished images of shelved servers that nothing needs any longer: those of servers that are deleted, and those that a newer
   * one of the same server replaces. Protected images stay. Sorted, from the first id after `after` on (null: from the beginning).
   */
  endedShelved(after: string | null, limit: number): Promise<readonly string[]>;
  /** At most `limit` images with `unshelveAskedAtMs`, sorted by id, from the first id after `after` on (null: from the beginning). */
  unshelveAsked(after: string | null, limit: number): Promise<readonly ImageRecord[]>;
  /** Deletes the image, whose id stays taken for ever. False if there is no such image. */
  deleteImage(id: string, atMs: number): Promise<boolean>;
}
