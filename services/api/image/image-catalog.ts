import { type ImageRecord, type ImageStore, imageStatus } from "../../../core/stores/api/image-store.ts";
import { BoundedCache } from "../../../runtime/bounded-cache.ts";
import type { Clock } from "../../../runtime/clock.ts";

const ENTRIES_MAX = 10_000;

/** What is known of an image's id. A deleted image may still have its file on hosts, but no server is made from it. */
export type FoundImage = ImageRecord | "deleted" | null;

/**
 * The images that new servers name, cached for `cacheMs`, including the fact that there is no such image. Changes by this process take
 * effect at once (`forget`), and changes by other processes after at most `cacheMs`.
 */
export class ImageCatalog {
  readonly #store: Pick<ImageStore, "image" | "deletedImages">;
  readonly #cacheMs: number;
  readonly #known: BoundedCache<{ readonly image: FoundImage }>;
  /** Rises with each `forget`, so that an answer to an earlier read is not cached. */
  #forgotten = 0;

  constructor(
    deps: { readonly store: Pick<ImageStore, "image" | "deletedImages">; readonly clock: Clock },
    options: { readonly cacheMs: number },
  ) {
    this.#store = deps.store;
    this.#cacheMs = options.cacheMs;
    this.#known = new BoundedCache({ clock: deps.clock, entriesMax: ENTRIES_MAX });
  }

  /** The image, or null if it was deleted or never registered. */
  async image(id: string): Promise<ImageRecord | null> {
    const found = await this.find(id);
    return found === "deleted" ? null : found;
  }

  async find(id: string): Promise<FoundImage> {
    const known = this.#known.get(id);
    if (known) return known.image;
    const forgotten = this.#forgotten;
    const image = (await this.#store.image(id)) ?? (await this.#deletion(id));
    // An image that is not active changes soon, and clients wait for that.
    const isMade = image === null || image === "deleted" || imageStatus(image) === "active";
    const isKept = forgotten === this.#forgotten && isMade;
    if (isKept) this.#known.set(id, { image }, this.#cacheMs);
    return image;
  }

  forget(id: string): void {
    this.#forgotten += 1;
    this.#known.set(id, { image: null }, 0);
  }

  async #deletion(id: string): Promise<"deleted" | null> {
    const deleted = await this.#store.deletedImages([id]);
    return deleted.length > 0 ? "deleted" : null;
  }
}
