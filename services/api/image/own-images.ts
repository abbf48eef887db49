import {
  type ImageCaller,
  type ImageService,
  type ServiceImage,
  type SnapshotImage,
  serviceImageOf,
} from "../../../core/stores/api/image-service.ts";
import type { ImageRecord, ImageStore } from "../../../core/stores/api/image-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { storedSpelling } from "../http/canonical-uuid.ts";
import { EndedImages } from "./ended-images.ts";
import { mayShow } from "./image-access.ts";
import type { ImageCatalog } from "./image-catalog.ts";

/** Backups of one server and type that are looked at. */
const BACKUPS_MAX = 1_000;

/** The api's own images, whose bits are in the directory that the hosts share. */
export class OwnImages implements ImageService {
  readonly #store: ImageStore;
  readonly #catalog: ImageCatalog;
  readonly #clock: Pick<Clock, "now">;
  readonly #ended: EndedImages;

  constructor(deps: {
    readonly store: ImageStore;
    readonly catalog: ImageCatalog;
    readonly clock: Pick<Clock, "now">;
  }) {
    this.#store = deps.store;
    this.#catalog = deps.catalog;
    this.#clock = deps.clock;
    this.#ended = new EndedImages(deps.store);
  }

  async find(id: string, caller: ImageCaller): Promise<ServiceImage | "deleted" | null> {
    const image = await this.#catalog.find(storedSpelling(id));
    if (image === null || image === "deleted") return image;
    // Under the rule that any image may be used, an image that the caller may not see must not pass as one that is not registered.
    return mayShow(image, caller) ? serviceImageOf(image) : "deleted";
  }

  async list(
    query: { readonly name: string | null; readonly marker: string | null; readonly limit: number },
    caller: ImageCaller,
  ): Promise<readonly ServiceImage[] | "no-marker"> {
    const last = query.marker === null ? null : await this.#store.image(storedSpelling(query.marker));
    if (query.marker !== null && (last === null || !mayShow(last, caller))) return "no-marker";
    const visibleTo = caller.isAdmin ? null : caller.projectId;
    const found = await this.#store.images({ ...query, marker: last?.id ?? null, visibleTo });
    return found.map(serviceImageOf);
  }

  /** The bits are where the hosts look already, or an operator puts them there. */
  async provide(): Promise<void> {}

  async begin(image: SnapshotImage, ownedMax: number | null): Promise<"created" | "id-taken" | "too-many"> {
    return this.#store.createImage(image, ownedMax);
  }

  async unfinished(after: string | null, limit: number): Promise<readonly SnapshotImage[]> {
    const uploads = await this.#store.uploads(after, limit);
    return uploads.filter((image): image is SnapshotImage => image.upload !== undefined);
  }

  async markSaving(id: string): Promise<void> {
    await this.#change(id, (image) =>
      image.upload === undefined ? image : { ...image, upload: { ...image.upload, state: "saving" } },
    );
  }

  /** The older backups are removed first, so that a process that dies in between leaves an image that is looked at again. */
  async finish(image: SnapshotImage): Promise<void> {
    const { rotation } = image.upload;
    if (rotation !== null) await this.#rotate(image, rotation);
    if (rotation === 0) return this.abandon(image.id);
    const updatedAtMs = this.#clock.now();
    await this.#change(image.id, ({ upload: _, ...active }) => ({ ...active, updatedAtMs }));
  }

  async endShelved(): Promise<void> {
    await this.#ended.removeEach((id) => this.abandon(id));
  }

  async abandon(id: string): Promise<void> {
    await this.#store.deleteImage(id, this.#clock.now());
    this.#catalog.forget(id);
  }

  /**
   * Removes the oldest backups of the server and type beyond `rotation`, counting this one. Newer backups stay, since this may be the late
   * repetition of another api's step. Source: `_rotate_backups` of Nova.
   */
  async #rotate({ id, owner, properties }: ImageRecord, rotation: number): Promise<void> {
    const { instance_uuid = "", backup_type = "" } = properties;
    const backups = await this.#store.images({
      ...{ visibleTo: owner, name: null, marker: id, limit: BACKUPS_MAX },
      properties: { image_type: "backup", instance_uuid, backup_type },
    });
    const older = backups.filter((one) => one.owner === owner && one.upload === undefined && !one.isProtected);
    for (const { id: oldId } of older.slice(Math.max(0, rotation - 1))) await this.abandon(oldId);
  }

  async #change(id: string, change: (image: ImageRecord) => ImageRecord): Promise<void> {
    await this.#store.updateImage(id, change);
    this.#catalog.forget(id);
  }
}
