import type { ImageService, SnapshotImage } from "../../../../core/stores/api/image-service.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import { PagedRounds } from "../../paged-rounds.ts";
import type { RequestsPort } from "../../ports.ts";
import { UnshelvedImages } from "./unshelved-images.ts";
import type { VolumeImageSettler } from "./volume-image-settler.ts";

/** The images that are made from servers. */
type SnapshotPort = Pick<
  ImageService,
  ("unfinished" | "markSaving" | "finish" | "abandon" | "endShelved") | ("unshelving" | "hideUnshelved" | "keepShelved")
>;

/** How often images of shelved servers that nothing needs any longer are looked for. */
const SWEEP_MS = 5_000;

type Outcome = "running" | "succeeded" | "failed" | "unknown";

/**
 * Ends the uploads of images that are made from servers. The copying ends in a cell, which does not report this, so the task of each image, which
 * has the image's id, is looked at from time to time. An image whose task succeeded becomes active, and one whose task failed is removed, as in
 * Nova. A cell that does not answer changes nothing. Every step may be repeated, so any number of apis may do this at a time.
 *
 * An image without a task is left alone for `settleMs`, which is longer than the call that registered it may take to begin the task.
 */
export class SnapshotSettler {
  readonly #images: SnapshotPort;
  readonly #store: Pick<RequestsPort, "requests">;
  readonly #cells: Cells;
  readonly #clock: Clock;
  readonly #events: Pick<ApiEvents, "snapshotsNotSettled">;
  readonly #settleMs: number;
  readonly #ticker: Ticker;
  readonly #rounds: PagedRounds<SnapshotImage>;
  readonly #unshelved: UnshelvedImages;
  readonly #volumeImages: Pick<VolumeImageSettler, "settle" | "idle"> | null;
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    deps: {
      readonly images: SnapshotPort;
      readonly store: Pick<RequestsPort, "requests">;
      readonly cells: Cells;
      readonly events: ApiEvents;
      readonly clock: Clock;
      /** Null where no server has volumes of Cinder. */
      readonly volumeImages?: Pick<VolumeImageSettler, "settle" | "idle"> | null;
    },
    options: { readonly pollMs: number; readonly settleMs: number },
  ) {
    this.#images = deps.images;
    this.#rounds = new PagedRounds((after, limit) => deps.images.unfinished(after, limit));
    this.#unshelved = new UnshelvedImages(deps);
    this.#volumeImages = deps.volumeImages ?? null;
    this.#store = deps.store;
    this.#cells = deps.cells;
    this.#clock = deps.clock;
    this.#events = deps.events;
    this.#settleMs = options.settleMs;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: () => this.settle(),
      onError: (error) => this.#events.snapshotsNotSettled(error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  async stop(): Promise<void> {
    await this.#ticker.stop();
    await this.#volumeImages?.idle();
  }

  /** Looks at the images whose upload has not ended, at those of servers that are being unshelved, and at times at those of shelved servers. Rejects as the API database does. */
  async settle(): Promise<void> {
    if (this.#clock.monotonic() - this.#sweptAtMs >= SWEEP_MS) {
      this.#sweptAtMs = this.#clock.monotonic();
      // Images that cannot be removed now are tried again at the next sweep, and the others are settled nevertheless.
      await this.#images.endShelved().catch((error: unknown) => this.#events.snapshotsNotSettled(error));
    }
    // An image service that does not answer keeps no images that are being made from being looked at.
    await this.#unshelved.settle().catch((error: unknown) => this.#events.snapshotsNotSettled(error));
    // Glance may refuse for good to remove one, such as one that its owner has protected.
    await this.#rounds.runEach("images could not be settled", async () => (image) => this.#settleOne(image));
  }

  async #settleOne(image: SnapshotImage): Promise<void> {
    const { snapshots } = image.upload;
    if (snapshots !== undefined) return this.#volumeImages?.settle(image, snapshots);
    switch (await this.#outcomeOf(image)) {
      case "running":
        if (image.upload.state === "queued") await this.#images.markSaving(image.id);
        break;
      case "succeeded":
        await this.#images.finish(image);
        break;
      case "failed":
        await this.#images.abandon(image.id);
        break;
      case "unknown":
        break;
    }
  }

  async #outcomeOf({ id, upload, createdAtMs }: SnapshotImage): Promise<Outcome> {
    const isNew = this.#clock.now() - createdAtMs < this.#settleMs;
    const [record] = await this.#store.requests([upload.serverUuid]);
    if (record === undefined || record.cell === null) return isNew ? "unknown" : "failed";
    const answer = await this.#cells.get(record.cell)?.operations((store) => store.tasksOf(record.serverUuid));
    if (answer === undefined || answer.kind === "unreachable") return "unknown";
    const task = answer.value.find((one) => one.task.id === id);
    if (task === undefined) return isNew ? "unknown" : "failed";
    if (task.outcome === null) return "running";
    return task.outcome === "success" ? "succeeded" : "failed";
  }
}
