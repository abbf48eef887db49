import type { ApiStore } from "../../../core/stores/api/api-store.ts";
import type { ImageQuery, ImageRecord, ImageStore } from "../../../core/stores/api/image-store.ts";

/** The in-process twin of the table of images. It works over the store that holds the requests; without it, the images of shelved servers stay. */
export class MemoryImageStore implements ImageStore {
  readonly #images = new Map<string, ImageRecord>();
  readonly #deleted = new Set<string>();
  readonly #requests: Pick<ApiStore, "requests"> | null;

  constructor(requests: Pick<ApiStore, "requests"> | null = null) {
    this.#requests = requests;
  }

  async createImage(image: ImageRecord, ownedMax: number | null): Promise<"created" | "id-taken" | "too-many"> {
    const owned = [...this.#images.values()].filter(({ owner }) => owner === image.owner);
    if (ownedMax !== null && owned.length >= ownedMax) return "too-many";
    if (this.#images.has(image.id) || this.#deleted.has(image.id)) return "id-taken";
    this.#images.set(image.id, structuredClone(image));
    return "created";
  }

  async image(id: string): Promise<ImageRecord | null> {
    return this.#images.get(id) ?? null;
  }

  async deletedImages(ids: readonly string[]): Promise<readonly string[]> {
    return ids.filter((id) => this.#deleted.has(id));
  }

  async images(query: ImageQuery): Promise<readonly ImageRecord[]> {
    const { visibleTo, name, visibility = null, communityOf, properties = {}, marker, limit } = query;
    const wanted = Object.entries(properties);
    const sorted = [...this.#images.values()].sort(newestFirst);
    const last = marker === null ? undefined : this.#images.get(marker);
    return sorted
      .filter((image) => visibleTo === null || image.owner === visibleTo || isOpenToAll(image))
      .filter(({ owner, visibility: own }) => own !== "community" || owner === (communityOf ?? owner))
      .filter((image) => name === null || image.name === name)
      .filter((image) => visibility === null || image.visibility === visibility)
      .filter((image) => wanted.every(([key, value]) => image.properties[key] === value))
      .filter((image) => last === undefined || newestFirst(last, image) < 0)
      .slice(0, limit);
  }

  async uploads(after: string | null, limit: number): Promise<readonly ImageRecord[]> {
    return [...this.#images.values()]
      .filter(({ id, upload }) => upload !== undefined && (after === null || id > after))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  async updateImage(id: string, change: (image: ImageRecord) => ImageRecord): Promise<ImageRecord | null> {
    const image = this.#images.get(id);
    if (image === undefined) return null;
    const { shelvedServer } = image;
    const changed = structuredClone({ ...change(image), ...(shelvedServer !== undefined && { shelvedServer }) });
    this.#images.set(id, changed);
    return changed;
  }

  async endedShelved(after: string | null, limit: number): Promise<readonly string[]> {
    const requests = this.#requests;
    const finished = [...this.#images.values()].filter(({ upload }) => upload === undefined);
    const ended: string[] = [];
    for (const { id, shelvedServer: server, createdAtMs, isProtected } of finished) {
      if (server === undefined || isProtected || requests === null) continue;
      const isReplaced = finished.some(
        (one) =>
          one.shelvedServer === server &&
          (one.createdAtMs > createdAtMs || (one.createdAtMs === createdAtMs && one.id > id)),
      );
      const [record] = await requests.requests([server]);
      if (isReplaced || record === undefined || record.state === "deleted") ended.push(id);
    }
    return ended
      .filter((id) => after === null || id > after)
      .sort()
      .slice(0, limit);
  }

  async unshelveAsked(after: string | null, limit: number): Promise<readonly ImageRecord[]> {
    return [...this.#images.values()]
      .filter(({ id, unshelveAskedAtMs }) => unshelveAskedAtMs !== undefined && (after === null || id > after))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  async deleteImage(id: string): Promise<boolean> {
    if (!this.#images.delete(id)) return false;
    this.#deleted.add(id);
    return true;
  }
}

function isOpenToAll({ visibility }: ImageRecord): boolean {
  return visibility === "public" || visibility === "community";
}

function newestFirst(a: ImageRecord, b: ImageRecord): number {
  if (a.createdAtMs !== b.createdAtMs) return b.createdAtMs - a.createdAtMs;
  if (a.id === b.id) return 0;
  return a.id < b.id ? -1 : 1;
}
