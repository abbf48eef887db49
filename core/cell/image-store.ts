export const IMAGE_VISIBILITIES = ["public", "private", "shared", "community"] as const;
export type ImageVisibility = (typeof IMAGE_VISIBILITIES)[number];

/** An image, as far as scheduling asks: what it is called, how big its server must be, and its properties. Its bits are elsewhere. */
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
  /** All else that was said of it, by Glance's names (`hw_cpu_policy`, `trait:CUSTOM_X`). */
  readonly properties: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface ImageQuery {
  /** Images of this project and those open to all; null: every image. */
  readonly visibleTo: string | null;
  /** Null: of any name. */
  readonly name: string | null;
  /** Only what comes after this image; null: from the start. */
  readonly marker: string | null;
  readonly limit: number;
}

/**
 * The images that servers may be made of. Both bodies (Postgres, in-memory) pass test/contract/image-store. Operating failures throw
 * the store's error.
 */
export interface ImageStore {
  createImage(image: ImageRecord): Promise<"created" | "id-taken">;
  image(id: string): Promise<ImageRecord | null>;
  /** The newest first, of the same time by id. */
  images(query: ImageQuery): Promise<readonly ImageRecord[]>;
  /** Replaces the image by what `change` makes of it, which runs again when somebody else was faster. Null: there is none. */
  updateImage(id: string, change: (image: ImageRecord) => ImageRecord): Promise<ImageRecord | null>;
  deleteImage(id: string): Promise<boolean>;
}
