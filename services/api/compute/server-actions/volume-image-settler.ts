import type { ImageService, SnapshotImage } from "../../../../core/stores/api/image-service.ts";
import type { ImageSnapshots } from "../../../../core/stores/api/image-store.ts";
import type { BlockStorage, RemoveOutcome } from "../../../../core/stores/block-storage.ts";
import { OWN_NAME } from "../../../../core/stores/networking.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";
import { GrowingWaits } from "../../growing-waits.ts";
import type { RequestsPort } from "../../ports.ts";
import { drop, endAction, isOfImage, LATE_SNAPSHOT_MS } from "./volume-images.ts";

/** The first wait of an image whose snapshots Cinder has not made or deleted yet. Each further wait is twice as long. */
const NOT_NOW_MS = 1_000;
/** The first wait of an image about which Cinder gave no answer. */
const RETRY_MS = 10_000;
const WAIT_MS_MAX = 60_000;
/** How many images are looked at in Cinder at a time. */
const RUNNING_MAX = 8;

/** A snapshot in one of these statuses cannot be used, or soon not. `deleted` stands for one that Cinder does not have. */
const LOST: readonly string[] = ["error", "error_deleting", "deleting", "deleted"];

interface Deps {
  readonly images: Pick<ImageService, "changeUnfinished" | "finish" | "abandon">;
  readonly storage: Pick<BlockStorage, "snapshot" | "snapshotsOf" | "removeSnapshot">;
  readonly store: Pick<RequestsPort, "changeServer">;
  readonly events: Pick<ApiEvents, "snapshotsNotSettled">;
  readonly clock: Clock;
}

/**
 * Follows images that consist of snapshots of volumes. An image becomes active when Cinder has made all of its snapshots. If Cinder cannot make one, or the call that asked for
 * them has broken off, all snapshots that name the image are deleted, and then the image is removed. Cinder deletes none that it still makes, so that is tried
 * again. While Cinder is silent, nothing changes. Every step may be repeated, so any number of apis may do this at a time.
 */
export class VolumeImageSettler {
  readonly #deps: Deps;
  readonly #waits: GrowingWaits;
  /** What is being settled, by the image's id. The promises never reject. */
  readonly #running = new Map<string, Promise<void>>();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#waits = new GrowingWaits(deps.clock, { msMax: WAIT_MS_MAX });
  }

  /** Begins to look at an image, unless that is under way or the image waits. It goes on beside other work, so that a slow Cinder holds up nothing else. */
  settle(image: SnapshotImage, snapshots: ImageSnapshots): void {
    const { id } = image;
    if (this.#running.has(id) || this.#running.size >= RUNNING_MAX || this.#waits.isWaiting(id)) return;
    const settling = this.#settle(image, snapshots)
      .then((isDone) => (isDone ? this.#waits.end(id) : this.#waits.wait(id, NOT_NOW_MS)))
      .catch((error: unknown) => {
        this.#waits.wait(id, RETRY_MS);
        this.#deps.events.snapshotsNotSettled(error);
      })
      .finally(() => this.#running.delete(id));
    this.#running.set(id, settling);
  }

  /** Resolves when nothing is being settled. */
  async idle(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  /** False if there is nothing to do yet. */
  async #settle(image: SnapshotImage, snapshots: ImageSnapshots): Promise<boolean> {
    switch (snapshots.phase) {
      case "making":
        return this.#dropIfLeft(image, snapshots);
      case "made":
        return this.#finishIfMade(image, snapshots);
      case "dropping":
        return this.#removeIfDropped(image, snapshots);
      default:
        return snapshots.phase satisfies never;
    }
  }

  /** A call that still makes the image says so before each question to Cinder. */
  async #dropIfLeft({ id }: SnapshotImage, { lateUntilMs }: ImageSnapshots): Promise<boolean> {
    const nowMs = this.#deps.clock.now();
    if (nowMs <= lateUntilMs) return false;
    const why = "The api that made the image has ended, or took too long: create the image again.";
    await drop(this.#deps, id, { why, lateUntilMs: nowMs + LATE_SNAPSHOT_MS });
    return true;
  }

  async #finishIfMade(image: SnapshotImage, { snapshotIds }: ImageSnapshots): Promise<boolean> {
    const { images, storage } = this.#deps;
    for (const snapshotId of snapshotIds) {
      const status = (await storage.snapshot(snapshotId, OWN_NAME))?.status ?? "deleted";
      if (status === "creating") return false;
      if (!LOST.includes(status)) continue;
      await drop(this.#deps, image.id, { why: notMade(snapshotId, status), lateUntilMs: null });
      return true;
    }
    await endAction(this.#deps, image, null);
    await images.finish(image);
    return true;
  }

  async #removeIfDropped(
    { id, ...image }: SnapshotImage,
    { volumeIds, lateUntilMs, why }: ImageSnapshots,
  ): Promise<boolean> {
    const { images, storage, clock } = this.#deps;
    // A snapshot that Cinder makes while it is asked is not in its answers.
    const isLast = clock.now() > lateUntilMs;
    const snapshots = (await Promise.all(volumeIds.map((volumeId) => storage.snapshotsOf(volumeId)))).flat();
    const left = snapshots.filter(isOfImage(id));
    const refusals: string[] = [];
    for (const snapshot of left) {
      if (snapshot.status === "creating" || snapshot.status === "deleting") continue;
      const outcome = await storage.removeSnapshot(snapshot.id, OWN_NAME);
      if (isRefused(outcome)) refusals.push(`snapshot ${snapshot.id} of volume ${snapshot.volumeId} (${outcome.why})`);
    }
    if (refusals.length > 0)
      throw new Error(
        `Cinder does not delete what was made for image ${id} that could not be made: ${refusals.join(", ")}. Delete it, for example with openstack volume snapshot delete --force, and the image is removed, too.`,
      );
    if (left.length > 0 || !isLast) return false;
    await endAction(this.#deps, { id, ...image }, why);
    await images.abandon(id);
    return true;
  }
}

const isRefused = (outcome: RemoveOutcome): outcome is Extract<RemoveOutcome, { readonly why: string }> =>
  outcome.kind === "forbidden" || outcome.kind === "refused";

const notMade = (snapshotId: string, status: string): string =>
  status === "deleted"
    ? `Snapshot ${snapshotId} was deleted before the image was made: create the image again.`
    : `Cinder could not make snapshot ${snapshotId}: its status is ${status}. Look into Cinder's messages (openstack volume message list), and create the image again.`;
