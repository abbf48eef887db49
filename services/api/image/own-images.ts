import {
  changeUnfinishedIn,
  type ImageCaller,
  type ImageListQuery,
  type ImageProperties,
  type ImageRefusal,
  type ImageService,
  passesFilters,
  type ServiceImage,
  type SnapshotImage,
  serviceImageOf,
  type UnshelvedImage,
} from "../../../core/stores/api/image-service.ts";
import type { ImageRecord, ImageStore } from "../../../core/stores/api/image-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { storedSpelling } from "../http/canonical-uuid.ts";
import { refuseLargeImage } from "../http/spec-size.ts";
import { PagedRounds } from "../paged-rounds.ts";
import { madeOfSnapshots } from "./change-images.ts";
import { noImage } from "./glance-changes.ts";
import { mayChange, mayShow } from "./image-access.ts";
import type { ImageCatalog } from "./image-catalog.ts";
import { STRETCH } from "./list-images.ts";

/** Backups of one server and type that are looked at. */
const BACKUPS_MAX = 1_000;

/** How many stretches are read for a page that is filtered. */
const ROUNDS_MAX = 50;

/** The api's own images, whose bits are in the directory that the hosts share. */
export class OwnImages implements ImageService {
  readonly #store: ImageStore;
  readonly #catalog: ImageCatalog;
  readonly #clock: Pick<Clock, "now">;
  readonly #ended: PagedRounds<{ readonly id: string }>;

  constructor(deps: {
    readonly store: ImageStore;
    readonly catalog: ImageCatalog;
    readonly clock: Pick<Clock, "now">;
  }) {
    this.#store = deps.store;
    this.#catalog = deps.catalog;
    this.#clock = deps.clock;
    this.#ended = new PagedRounds(async (after, limit) =>
      (await deps.store.endedShelved(after, limit)).map((id) => ({ id })),
    );
  }

  async find(id: string, caller: ImageCaller): Promise<ServiceImage | "deleted" | null> {
    const image = await this.#catalog.find(storedSpelling(id));
    if (image === null || image === "deleted") return image;
    // Under the rule that any image may be used, an image that the caller may not see must not pass as one that is not registered.
    return mayShow(image, caller) ? serviceImageOf(image) : "deleted";
  }

  /** A page is read in rounds, since only some filters are the store's. */
  async list(query: ImageListQuery, caller: ImageCaller): Promise<readonly ServiceImage[] | "no-marker"> {
    const last = query.marker === null ? null : await this.#store.image(storedSpelling(query.marker));
    if (query.marker !== null && (last === null || !mayShow(last, caller))) return "no-marker";
    const visibleTo = caller.isAdmin ? null : caller.projectId;
    const communityOf = caller.projectId;
    const { name, limit, filters = {} } = query;
    const { properties = {}, ...others } = filters;
    const size = Object.keys(others).length === 0 ? limit : Math.max(limit, STRETCH);
    const found: ServiceImage[] = [];
    let marker = last?.id ?? null;
    for (let round = 0; round < ROUNDS_MAX && found.length < limit; round += 1) {
      const images = await this.#store.images({ visibleTo, name, communityOf, properties, marker, limit: size });
      found.push(...images.map(serviceImageOf).filter((image) => passesFilters(image, filters)));
      if (images.length < size) break;
      marker = images.at(-1)?.id ?? null;
    }
    return found.slice(0, limit);
  }

  async imagesUrl(): Promise<null> {
    return null;
  }

  async remove(asked: string, caller: ImageCaller): Promise<{ readonly kind: "removed" } | ImageRefusal> {
    const id = storedSpelling(asked);
    const image = await this.#store.image(id);
    const refusal = refusalOf(image, asked, caller);
    if (refusal !== null) return refusal;
    if (image?.upload?.snapshots !== undefined) return { kind: "conflict", why: madeOfSnapshots(id) };
    if (image?.isProtected) return { kind: "forbidden", why: `Image ${id} is protected and cannot be deleted.` };
    if (!(await this.#store.deleteImage(id, this.#clock.now()))) return noImage(asked);
    this.#catalog.forget(id);
    return { kind: "removed" };
  }

  async changeProperties(
    asked: string,
    change: (properties: ImageProperties) => ImageProperties,
    caller: ImageCaller,
  ): Promise<{ readonly kind: "changed"; readonly properties: ImageProperties } | ImageRefusal> {
    const id = storedSpelling(asked);
    const refusal = refusalOf(await this.#store.image(id), asked, caller);
    if (refusal !== null) return refusal;
    const updatedAtMs = this.#clock.now();
    const changed = await this.#store.updateImage(id, (image) => {
      const properties = change(image.properties);
      refuseLargeImage(properties);
      return { ...image, properties, updatedAtMs };
    });
    this.#catalog.forget(id);
    return changed === null ? noImage(asked) : { kind: "changed", properties: changed.properties };
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

  async changeUnfinished(id: string, change: (image: SnapshotImage) => SnapshotImage): Promise<SnapshotImage | null> {
    const changed = await changeUnfinishedIn(this.#store, id, change);
    this.#catalog.forget(id);
    return changed;
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
    await this.#change(image.id, ({ upload, ...active }) =>
      upload?.snapshots?.phase === "dropping" ? { ...active, upload } : { ...active, updatedAtMs },
    );
  }

  async endShelved(): Promise<void> {
    const remove = ({ id }: { readonly id: string }) => this.abandon(id);
    await this.#ended.runEach("images of shelved servers could not be removed", async () => remove);
  }

  /** The api's own images stay after that, because a file of a deleted image counts as one that nothing needs (`berth image prune`). */
  async noteUnshelving(): Promise<void> {}

  async unshelving(): Promise<readonly UnshelvedImage[]> {
    return [];
  }

  async hideUnshelved(): Promise<void> {}

  async keepShelved(): Promise<void> {}

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

/** Why the caller may not change an image, or null. */
function refusalOf(image: ImageRecord | null, id: string, caller: ImageCaller): ImageRefusal | null {
  if (image === null || !mayShow(image, caller)) return noImage(id);
  if (mayChange(image, caller)) return null;
  return { kind: "forbidden", why: "You are not permitted to modify this image." };
}
