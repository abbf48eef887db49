import type { ImageStore } from "../../../core/stores/api/image-store.ts";

/** Images that one call removes. */
const PAGE = 100;
/** An image service that is down is not asked about all of them. */
const ERRORS_MAX = 5;

/** Goes through the images of shelved servers that nothing needs any longer, one page a call, so that those that cannot be removed keep no others. */
export class EndedImages {
  readonly #store: Pick<ImageStore, "endedShelved">;
  #after: string | null = null;

  constructor(store: Pick<ImageStore, "endedShelved">) {
    this.#store = store;
  }

  /**
   * Removes each image of the next page, until some errors have occurred. Rejects at the end with an AggregateError if images could not be removed. The next
   * call goes on behind the last image that was tried, and later ones try these again.
   */
  async removeEach(remove: (id: string) => Promise<void>): Promise<void> {
    const ids = await this.#store.endedShelved(this.#after, PAGE);
    this.#after = ids.length < PAGE ? null : (ids.at(-1) ?? null);
    const errors: unknown[] = [];
    for (const id of ids) {
      await remove(id).catch((error: unknown) => errors.push(error));
      if (errors.length < ERRORS_MAX) continue;
      this.#after = id;
      break;
    }
    if (errors.length > 0)
      throw new AggregateError(errors, `${errors.length} images of shelved servers could not be removed`);
  }
}
