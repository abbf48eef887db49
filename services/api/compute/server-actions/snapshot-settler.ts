import type { ImageRecord, ImageStore } from "../../../../core/stores/api/image-store.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import type { ImageCatalog } from "../../image/image-catalog.ts";
import { PagedRounds } from "../../paged-rounds.ts";
import type { RequestsPort } from "../../ports.ts";

/** Backups of one server and type that are looked at. */
const BACKUPS_MAX = 1_000;

type Outcome = "running" | "succeeded" | "failed" | "unknown";

/**
 * Ends the uploads of images that are made from servers. The copying ends in a cell, which does not report this, so the task of each image, which
 * has the image's id, is looked at from time to time. An image whose task succeeded becomes active, and one whose task failed is removed, as in
 * Nova. A cell that does not answer changes nothing. Every step may be repeated, so any number of apis may do this at a time.
 *
 * An image without a task is left alone for `settleMs`, which is longer than the call that registered it may take to begin the task.
 */
export class SnapshotSettler {
  readonly #images: ImageStore;
  readonly #catalog: Pick<ImageCatalog, "forget"> | null;
  readonly #store: Pick<RequestsPort, "requests">;
  readonly #cells: Cells;
  readonly #clock: Clock;
  readonly #settleMs: number;
  readonly #ticker: Ticker;
  readonly #rounds: PagedRounds<ImageRecord>;

  constructor(
    deps: {
      readonly images: ImageStore;
      readonly catalog: Pick<ImageCatalog, "forget"> | null;
      readonly store: Pick<RequestsPort, "requests">;
      readonly cells: Cells;
      readonly events: ApiEvents;
      readonly clock: Clock;
    },
    options: { readonly pollMs: number; readonly settleMs: number },
  ) {
    this.#images = deps.images;
    this.#rounds = new PagedRounds((after, limit) => deps.images.uploads(after, limit));
    this.#catalog = deps.catalog;
    this.#store = deps.store;
    this.#cells = deps.cells;
    this.#clock = deps.clock;
    this.#settleMs = options.settleMs;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: () => this.settle(),
      onError: (error) => deps.events.snapshotsNotSettled(error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** Looks at the images whose upload has not ended. Rejects as the API database does. */
  settle(): Promise<void> {
    return this.#rounds.run(async (page) => {
      for (const image of page) await this.#settleOne(image);
    });
  }

  async #settleOne(image: ImageRecord): Promise<void> {
    switch (await this.#outcomeOf(image)) {
      case "running":
        if (image.upload?.state === "queued") await this.#change(image.id, markSaving);
        break;
      case "succeeded":
        await this.#finish(image);
        break;
      case "failed":
        await this.#remove(image.id);
        break;
      case "unknown":
        break;
    }
  }

  async #outcomeOf({ id, upload, createdAtMs }: ImageRecord): Promise<Outcome> {
    const isNew = this.#clock.now() - createdAtMs < this.#settleMs;
    const [record] = upload === undefined ? [] : await this.#store.requests([upload.serverUuid]);
    if (record === undefined || record.cell === null) return isNew ? "unknown" : "failed";
    const answer = await this.#cells.get(record.cell)?.operations((store) => store.tasksOf(record.serverUuid));
    if (answer === undefined || answer.kind === "unreachable") return "unknown";
    const task = answer.value.find((one) => one.task.id === id);
    if (task === undefined) return isNew ? "unknown" : "failed";
    if (task.outcome === null) return "running";
    return task.outcome === "success" ? "succeeded" : "failed";
  }

  /** The older backups are removed first, so that a process that dies in between leaves an image that is looked at again. */
  async #finish(image: ImageRecord): Promise<void> {
    const rotation = image.upload?.rotation ?? null;
    if (rotation !== null) await this.#rotate(image, rotation);
    if (rotation === 0) return this.#remove(image.id);
    const updatedAtMs = this.#clock.now();
    await this.#change(image.id, ({ upload: _, ...active }) => ({ ...active, updatedAtMs }));
  }

  /**
   * Removes the oldest backups of the server and type beyond `rotation`, counting this one. Newer backups stay, since this may be the late
   * repetition of another api's step. Source: `_rotate_backups` of Nova.
   */
  async #rotate({ id, owner, properties }: ImageRecord, rotation: number): Promise<void> {
    const { instance_uuid = "", backup_type = "" } = properties;
    const backups = await this.#images.images({
      ...{ visibleTo: owner, name: null, marker: id, limit: BACKUPS_MAX },
      properties: { image_type: "backup", instance_uuid, backup_type },
    });
    const older = backups.filter((one) => one.owner === owner && one.upload === undefined && !one.isProtected);
    for (const { id: oldId } of older.slice(Math.max(0, rotation - 1))) await this.#remove(oldId);
  }

  async #remove(id: string): Promise<void> {
    await this.#images.deleteImage(id, this.#clock.now());
    this.#catalog?.forget(id);
  }

  async #change(id: string, change: (image: ImageRecord) => ImageRecord): Promise<void> {
    await this.#images.updateImage(id, change);
    this.#catalog?.forget(id);
  }
}

const markSaving = (image: ImageRecord): ImageRecord =>
  image.upload === undefined ? image : { ...image, upload: { ...image.upload, state: "saving" } };
