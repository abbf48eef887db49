import type { ImageRecord, ImageStore } from "../../../core/stores/api/image-store.ts";
import { BoundedCache } from "../../../runtime/bounded-cache.ts";
import type { Clock } from "../../../runtime/clock.ts";

const ENTRIES_MAX = 10_000;

/**
 * The images that new servers name, cached for `cacheMs`, including the fact that there is no such image. Changes by this process take
 * effect at once (`forget`), and changes by other processes after at most `cacheMs`.
 */
export class ImageCatalog {
  readonly #store: Pick<ImageStore, "image">;
  readonly #cacheMs: number;
  readonly #known: BoundedCache<{ readonly image: ImageRecord | null }>;
  /** Rises with each `forget`, so that an answer to an earlier read is not cached. */
  #forgotten = 0;

  constructor(
    deps: { readonly store: Pick<ImageStore, "image">; readonly clock: Clock },
    options: { readonly cacheMs: number },
  ) {
    this.#store = deps.store;
    this.#cacheMs = options.cacheMs;
    this.#known = new BoundedCache({ clock: deps.clock, entriesMax: ENTRIES_MAX });
  }

  async find(id: string): Promise<ImageRecord | null> {
    const known = this.#known.get(id);
    if (known) return known.image;
    const forgotten = this.#forgotten;
    const image = await this.#store.image(id);
    // An image whose upload has not ended changes soon, and clients wait for that.
    const isKept = forgotten === this.#forgotten && image?.upload === undefined;
    if (isKept) this.#known.set(id, { image }, this.#cacheMs);
    return image;
  }

  forget(id: string): void {
    this.#forgotten += 1;
    this.#known.set(id, { image: null }, 0);
  }
}
