import { createHash, hash } from "node:crypto";
import { Readable } from "node:stream";
import type { ImageDirectory } from "../../../adapters/images/image-directory.ts";
import type { WantedImages } from "../../../adapters/images/wanted-images.ts";
import type { GlanceClient } from "../../../adapters/openstack/glance-client.ts";
import type { GlanceImage } from "../../../adapters/openstack/glance-image.ts";
import { NeighbourError } from "../../../adapters/openstack/neighbour-error.ts";
import {
  changeUnfinishedIn,
  type ImageCaller,
  type ImageListQuery,
  type ImageProperties,
  type ImageRefusal,
  type ImageService,
  type ServiceImage,
  type SnapshotImage,
  type UnshelvedImage,
} from "../../../core/stores/api/image-service.ts";
import { type ImageStore, withSnapshotsDropped } from "../../../core/stores/api/image-store.ts";
import { BoundedCache } from "../../../runtime/bounded-cache.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { ApiEvents } from "../events.ts";
import { canonicalUuid } from "../http/canonical-uuid.ts";
import { PagedRounds } from "../paged-rounds.ts";
import { changeInGlance, glanceFilters, noImage, removeInGlance } from "./glance-changes.ts";

const ENTRIES_MAX = 10_000;
/** Backups of one server and type that are looked at. */
const BACKUPS_MAX = 1_000;
/** Images whose bits one process uploads at once. */
const UPLOADS_MAX = 4;
/** Another machine may see a file that a host has written only after a while. It counts from when this process first looks for the file. */
const FILE_APPEARS_MS = 300_000;

/** What is asked of Glance. */
export type GlanceApi = Pick<GlanceClient, keyof GlanceClient>;
type GlanceImageStore = Pick<
  ImageStore,
  "createImage" | "uploads" | "updateImage" | "deleteImage" | "endedShelved" | "unshelveAsked"
>;

/**
 * The images of Glance. Images are looked up and registered in the caller's name. What happens later, when the caller's token may have
 * expired, is done in this service's own name: the upload of copied disks, and the removal of what they replace.
 *
 * An image that is being made has a row in the api's own table until Glance has its bits. The row is written first and removed last, so a process
 * that dies in between leaves an image that is looked at again.
 */
export class GlanceImages implements ImageService {
  readonly #glance: GlanceApi;
  readonly #store: GlanceImageStore;
  readonly #files: Pick<ImageDirectory, "read" | "adopt" | "remove">;
  readonly #wanted: Pick<WantedImages, "want">;
  readonly #events: Pick<ApiEvents, "snapshotsNotSettled" | "snapshotLost">;
  readonly #clock: Clock;
  readonly #cacheMs: number;
  readonly #ended: PagedRounds<{ readonly id: string }>;
  readonly #known: BoundedCache<Promise<GlanceImage | null>>;
  /** When this process first missed the file of an image, by the image's id. */
  readonly #missedAtMs: BoundedCache<number>;
  /** The uploads under way, by the image's id. */
  readonly #uploads = new Map<string, Promise<void>>();

  constructor(
    deps: {
      readonly glance: GlanceApi;
      readonly store: GlanceImageStore;
      readonly files: Pick<ImageDirectory, "read" | "adopt" | "remove">;
      readonly wanted: Pick<WantedImages, "want">;
      readonly events: Pick<ApiEvents, "snapshotsNotSettled" | "snapshotLost">;
      readonly clock: Clock;
    },
    options: { readonly cacheMs: number },
  ) {
    this.#glance = deps.glance;
    this.#store = deps.store;
    this.#files = deps.files;
    this.#wanted = deps.wanted;
    this.#events = deps.events;
    this.#clock = deps.clock;
    this.#cacheMs = options.cacheMs;
    this.#ended = new PagedRounds(async (after, limit) =>
      (await deps.store.endedShelved(after, limit)).map((id) => ({ id })),
    );
    this.#known = new BoundedCache({ clock: deps.clock, entriesMax: ENTRIES_MAX });
    this.#missedAtMs = new BoundedCache({ clock: deps.clock, entriesMax: ENTRIES_MAX });
  }

  /** Answers are kept for a moment, for one token each, so that many servers of one image do not ask as often. */
  async find(asked: string, caller: ImageCaller): Promise<ServiceImage | null> {
    const id = canonicalUuid(asked);
    if (id === null) return null;
    const key = keyOf(id, caller);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const asking = this.#glance.image(id, caller).then((image) => (image?.status === "deleted" ? null : image));
    this.#known.set(key, asking, this.#cacheMs);
    const forget = () => this.#known.set(key, asking, 0);
    // An image that is not active changes soon, and clients wait for that.
    asking.then((image) => image?.status === "active" || forget(), forget);
    return asking;
  }

  /** Cinder reads images with the token with which it was asked, which is that of this service. */
  async isReadByOthers(asked: string): Promise<boolean> {
    const id = canonicalUuid(asked);
    return id !== null && (await this.#glance.image(id, null))?.status === "active";
  }

  async list(query: ImageListQuery, caller: ImageCaller): Promise<readonly ServiceImage[] | "no-marker"> {
    const { name, limit } = query;
    const marker = query.marker === null ? null : canonicalUuid(query.marker);
    if (query.marker !== null && marker === null) return "no-marker";
    try {
      return await this.#glance.images({ limit, marker, filters: glanceFilters(name, query.filters) }, caller);
    } catch (error) {
      const isRefused = error instanceof NeighbourError && (error.code === "invalid" || error.code === "not-found");
      if (isRefused && marker !== null && (await this.#glance.image(marker, caller)) === null) return "no-marker";
      throw error;
    }
  }

  imagesUrl(): Promise<string> {
    return this.#glance.imagesUrl();
  }

  async remove(asked: string, caller: ImageCaller): Promise<{ readonly kind: "removed" } | ImageRefusal> {
    const id = canonicalUuid(asked);
    if (id === null) return noImage(asked);
    const outcome = await removeInGlance(this.#glance, id, caller);
    this.#forget(id, caller);
    return outcome;
  }

  async changeProperties(
    asked: string,
    change: (properties: ImageProperties) => ImageProperties,
    caller: ImageCaller,
  ): Promise<{ readonly kind: "changed"; readonly properties: ImageProperties } | ImageRefusal> {
    const id = canonicalUuid(asked);
    if (id === null) return noImage(asked);
    const outcome = await changeInGlance(this.#glance, id, change, caller);
    this.#forget(id, caller);
    return outcome;
  }

  /** The caller sees its own change at once. */
  #forget(id: string, caller: ImageCaller): void {
    this.#known.set(keyOf(id, caller), Promise.resolve(null), 0);
  }

  async provide({ id, sha512, diskFormat, bytes }: ServiceImage): Promise<void> {
    await this.#wanted.want({ id, sha512, diskFormat: diskFormat ?? "raw", bytes });
  }

  /** Glance has quotas of its own, so `ownedMax` does not count. */
  async begin(
    image: SnapshotImage,
    _ownedMax: number | null,
    caller: ImageCaller,
  ): Promise<"created" | "id-taken" | "too-many"> {
    const outcome = await this.#store.createImage(image, null);
    if (outcome !== "created") return outcome;
    try {
      await this.#glance.create(image, caller);
      return "created";
    } catch (error) {
      // After silence it is unknown whether Glance has the image. Its task will not be found, and it is removed then.
      if (!(error instanceof NeighbourError) || error.code === "unreachable") throw error;
      await this.#store.deleteImage(image.id, this.#clock.now());
      if (error.code === "conflict") return "id-taken";
      if (error.code === "over-quota") return "too-many";
      throw error;
    }
  }

  async unfinished(after: string | null, limit: number): Promise<readonly SnapshotImage[]> {
    const uploads = await this.#store.uploads(after, limit);
    return uploads.filter((image): image is SnapshotImage => image.upload !== undefined);
  }

  changeUnfinished(id: string, change: (image: SnapshotImage) => SnapshotImage): Promise<SnapshotImage | null> {
    return changeUnfinishedIn(this.#store, id, change);
  }

  async markSaving(id: string): Promise<void> {
    await this.#store.updateImage(id, (image) =>
      image.upload === undefined ? image : { ...image, upload: { ...image.upload, state: "saving" } },
    );
  }

  /** Begins to upload the bits, which may take long. */
  async finish(image: SnapshotImage): Promise<void> {
    if (this.#uploads.has(image.id) || this.#uploads.size >= UPLOADS_MAX) return;
    const ended = this.#finish(image)
      .catch((error: unknown) => this.#events.snapshotsNotSettled(error))
      .finally(() => this.#uploads.delete(image.id));
    this.#uploads.set(image.id, ended);
  }

  /** The row goes last, so a process that dies in between leaves an image that is removed by a later call. */
  async endShelved(): Promise<void> {
    await this.#ended.runEach("images of shelved servers could not be removed", async () => async ({ id }) => {
      // Its owner has protected it in Glance, so it stays, with its file.
      if ((await this.#removeUnprotected(id)) === "protected") return;
      await this.#files.remove(id);
      await this.#store.deleteImage(id, this.#clock.now());
    });
  }

  async noteUnshelving(id: string): Promise<void> {
    const unshelveAskedAtMs = this.#clock.now();
    await this.#store.updateImage(id, (image) =>
      image.shelvedServer === undefined ? image : { ...image, unshelveAskedAtMs },
    );
  }

  async unshelving(after: string | null, limit: number): Promise<readonly UnshelvedImage[]> {
    const asked = await this.#store.unshelveAsked(after, limit);
    return asked.filter(
      (image): image is UnshelvedImage => image.unshelveAskedAtMs !== undefined && image.shelvedServer !== undefined,
    );
  }

  /** The row stays, too, for the file that it is about. It says last that Glance has been told. */
  async hideUnshelved(id: string): Promise<void> {
    await this.#removeUnprotected(id);
    await this.keepShelved(id);
  }

  async keepShelved(id: string): Promise<void> {
    await this.#store.updateImage(id, ({ unshelveAskedAtMs: _, ...image }) => image);
  }

  async #removeUnprotected(id: string): Promise<"removed" | "protected"> {
    try {
      await this.#glance.remove(id);
      return "removed";
    } catch (error) {
      const isRefused = error instanceof NeighbourError && error.code === "refused";
      if (isRefused && (await this.#glance.image(id, null))?.isProtected) return "protected";
      throw error;
    }
  }

  /**
   * Glance is asked first, so that an image is not forgotten while Glance has it. One that its owner has protected is left to its owner. The file stays, since
   * a host may still write to it.
   */
  async abandon(id: string): Promise<void> {
    await this.#removeUnprotected(id);
    await this.#store.deleteImage(id, this.#clock.now());
  }

  /** Resolves when no upload is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#uploads.values());
  }

  async #finish(image: SnapshotImage): Promise<void> {
    const { id, upload } = image;
    if (upload.rotation === 0) return this.abandon(id);
    if (upload.snapshots !== undefined) return this.#finishWithoutBits(image);
    const shown = await this.#glance.image(id, null);
    // Its owner has deleted it in the meantime.
    if (shown === null || shown.status === "deleted") return this.#end(image, { keepsFile: false });
    // Another process uploads it.
    if (shown.status === "saving") return;
    if (shown.status === "killed") return this.#lose(image, "Glance has broken off its upload");
    const sent = shown.status === "queued" ? await this.#upload(image) : null;
    if (shown.status === "queued" && sent === null) return;
    const { sha512 } = (await this.#glance.image(id, null)) ?? {};
    // A host may be about to read the file of a shelved server, so that one keeps its name.
    if (typeof sha512 === "string" && image.shelvedServer === undefined) {
      // The image's owner may have uploaded other bytes. The file must not pass as those.
      if ((sent ?? (await this.#hashOf(id))) === sha512) await this.#files.adopt(id, sha512);
    }
    if (upload.rotation !== null) await this.#rotate(image, upload.rotation);
    await this.#end(image, { keepsFile: true });
  }

  /** Glance shows an image as active only when it has bits, so it is given none of them, in an upload. Source: `_create_v2` of Nova's `image/glance.py`. */
  async #finishWithoutBits({ id, properties: to }: SnapshotImage): Promise<void> {
    const shown = await this.#glance.image(id, null);
    if (shown === null || shown.status === "deleted" || shown.status === "killed")
      return this.#dropSnapshots(id, `Image ${id} was deleted in Glance before its snapshots were made.`);
    // Another process uploads it.
    if (shown.status === "saving") return;
    try {
      if (shown.status === "queued") {
        await this.#glance.setProperties(id, { from: shown.properties, to: { ...shown.properties, ...to } }, null);
        await this.#glance.upload(id, () => Readable.from([]));
      }
    } catch (error) {
      if (!(error instanceof NeighbourError)) throw error;
      // Another process has begun to upload it.
      if (error.code === "conflict") return;
      if (error.code === "over-quota") return this.#dropSnapshots(id, error.message);
      throw error;
    }
    await this.#store.deleteImage(id, this.#clock.now());
  }

  async #dropSnapshots(id: string, why: string): Promise<void> {
    await this.#store.updateImage(id, (image) => withSnapshotsDropped(image, { why, lateUntilMs: null }));
  }

  /** Returns the SHA-512 of the bits that Glance has now, or null if it does not have them. */
  async #upload(image: SnapshotImage): Promise<string | null> {
    const { id } = image;
    const found = await this.#files.read(id, null);
    if (found === null) {
      const nowMs = this.#clock.monotonic();
      const missedAtMs = this.#missedAtMs.get(id) ?? nowMs;
      this.#missedAtMs.set(id, missedAtMs, 2 * FILE_APPEARS_MS);
      if (nowMs - missedAtMs > FILE_APPEARS_MS) await this.#lose(image, "the directory of images has no file of it");
      return null;
    }
    found.bits.destroy();
    let sent = createHash("sha512");
    const bits = () => {
      sent = createHash("sha512");
      return Readable.from(this.#hashed(id, sent));
    };
    try {
      await this.#glance.upload(id, bits);
    } catch (error) {
      if (!(error instanceof NeighbourError)) throw error;
      // Another process has begun to upload it.
      if (error.code === "conflict") return null;
      if (error.code === "over-quota") await this.#lose(image, error.message);
      if (error.code === "over-quota") return null;
      throw error;
    }
    const has = await this.#glance.image(id, null);
    const sha512 = sent.digest("hex");
    if (has === null) return null;
    if (has.sha512 === null || has.sha512 === sha512) return sha512;
    await this.#lose(image, "Glance has received other bytes than were sent");
    return null;
  }

  /** The SHA-512 of the file of an image. Null if there is none. */
  async #hashOf(id: string): Promise<string | null> {
    const found = await this.#files.read(id, null);
    if (found === null) return null;
    const hashed = createHash("sha512");
    for await (const part of found.bits) hashed.update(part);
    return hashed.digest("hex");
  }

  async *#hashed(id: string, sent: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
    const found = await this.#files.read(id, null);
    if (found === null) throw new Error(`the file of image ${id} has gone`);
    for await (const part of found.bits) {
      sent.update(part);
      yield part;
    }
  }

  /** The image is not made, since Glance cannot have its bits. */
  async #lose(image: SnapshotImage, reason: string): Promise<void> {
    this.#events.snapshotLost(image.id, reason);
    await this.#removeUnprotected(image.id);
    await this.#end(image, { keepsFile: true });
  }

  /**
   * The making of the image has ended. The file of a shelved server may be the only copy of its disk, so it stays, whatever Glance has, and the row says
   * for which server.
   */
  async #end({ id, shelvedServer }: SnapshotImage, { keepsFile }: { readonly keepsFile: boolean }): Promise<void> {
    if (shelvedServer !== undefined) {
      await this.#store.updateImage(id, ({ upload: _, ...ended }) => ended);
      return;
    }
    if (!keepsFile) await this.#files.remove(id);
    await this.#store.deleteImage(id, this.#clock.now());
  }

  /** Removes the oldest backups of the server and type beyond `rotation`, counting this one. Newer ones stay, as in the api's own images. */
  async #rotate({ id, owner, properties }: SnapshotImage, rotation: number): Promise<void> {
    const { instance_uuid = "", backup_type = "" } = properties;
    const filters = { owner, image_type: "backup", instance_uuid, backup_type, status: "active" };
    const backups = await this.#glance.images({ limit: BACKUPS_MAX, marker: id, filters }, null);
    const older = backups.filter((one) => !one.isProtected);
    for (const { id: oldId } of older.slice(Math.max(0, rotation - 1))) await this.#glance.remove(oldId);
  }
}

const keyOf = (id: string, { token }: ImageCaller): string => `${id} ${hash("sha256", token ?? "")}`;
