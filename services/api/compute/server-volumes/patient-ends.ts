import type { EndingReplacement } from "../../../../adapters/openstack/replacement-ender.ts";
import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";
import { GrowingWaits } from "../../growing-waits.ts";
import type { SettledVolumes } from "./server-volumes.ts";

/** How long one round waits for Cinder altogether, so that a slow one keeps nothing waiting that does not need it. */
const ROUND_MS = 5_000;
/** How many attachments are being ended at a time. */
const RUNNING_MAX = 8;
/** The first wait of an attachment that Cinder does not end yet, since it still fills the volume. Each further wait is twice as long. */
const NOT_NOW_MS = 2_000;
/** The first wait of an attachment about which Cinder gave no answer. */
const RETRY_MS = 10_000;
const WAIT_MS_MAX = 60_000;

/**
 * Ends attachments in rounds. One that Cinder does not end now stays as it is, is logged, and is tried again later. One that Cinder takes long to end goes on
 * beside the following rounds, and is not begun a second time meanwhile.
 */
export class PatientEnds implements Pick<VolumeStore, "confirmAttached" | "release" | "endAttachment"> {
  readonly #volumes: SettledVolumes;
  readonly #events: Pick<ApiEvents, "volumesNotSettled" | "volumeLeftInDoubt">;
  readonly #clock: Clock;
  /** The volumes whose attachment could not be ended, by their ids, so that the others have their turn. */
  readonly #waits: GrowingWaits;
  /** What is being ended, by the volume and its operation or attachment. The promises never reject. */
  readonly #running = new Map<string, Promise<void>>();
  /** When this round waits for Cinder no longer, by the monotonic clock. */
  #untilMs = Number.POSITIVE_INFINITY;

  constructor(deps: {
    readonly volumes: SettledVolumes;
    readonly events: Pick<ApiEvents, "volumesNotSettled" | "volumeLeftInDoubt">;
    readonly clock: Clock;
  }) {
    this.#volumes = deps.volumes;
    this.#events = deps.events;
    this.#clock = deps.clock;
    this.#waits = new GrowingWaits(deps.clock, { msMax: WAIT_MS_MAX });
  }

  beginRound(): void {
    this.#untilMs = this.#clock.monotonic() + ROUND_MS;
  }

  /** Resolves when nothing is being ended any longer. */
  async stop(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  confirmAttached(...by: Parameters<VolumeStore["confirmAttached"]>): Promise<boolean> {
    return this.#volumes.confirmAttached(...by);
  }

  async release(id: string, taskId: string): Promise<boolean> {
    const release = async () => (await this.#volumes.release(id, taskId)) || null;
    return (await this.#tryIn(id, taskId, release)) ?? false;
  }

  endAttachment(id: string, attachmentId: string, neverRan: boolean): Promise<"deleted" | "released" | null> {
    return this.#tryIn(id, attachmentId, () => this.#volumes.endAttachment(id, attachmentId, neverRan));
  }

  /** Tells Cinder how a replacement has ended, and then ends the attachment of the volume. Cinder's refusal is logged, and keeps nothing. */
  endReplaced(
    id: string,
    attachmentId: string,
    replacement: EndingReplacement,
  ): Promise<"deleted" | "released" | null> {
    return this.#tryIn(id, attachmentId, async () => {
      const outcome = await this.#volumes.endReplacement?.(replacement, attachmentId);
      if (outcome?.kind === "held") return null;
      if (outcome?.kind === "refused") this.#events.volumeLeftInDoubt(replacement, outcome.why);
      return this.#volumes.endAttachment(id, attachmentId, false);
    });
  }

  /** `end` resolves with null if nothing has ended. So does this, also if it is not known in this round. */
  async #tryIn<Outcome>(id: string, what: string, end: () => Promise<Outcome | null>): Promise<Outcome | null> {
    const key = `${id} ${what}`;
    const leftMs = this.#untilMs - this.#clock.monotonic();
    if (leftMs <= 0 || this.#running.has(key) || this.#running.size >= RUNNING_MAX || this.#waits.isWaiting(id))
      return null;
    const ending = this.#end(id, end).finally(() => this.#running.delete(key));
    this.#running.set(
      key,
      ending.then(
        () => {},
        () => {},
      ),
    );
    return leftMs === Number.POSITIVE_INFINITY ? ending : this.#within(leftMs, ending);
  }

  async #end<Outcome>(id: string, end: () => Promise<Outcome | null>): Promise<Outcome | null> {
    try {
      const outcome = await end();
      if (outcome === null) this.#waits.wait(id, NOT_NOW_MS);
      else this.#waits.end(id);
      return outcome;
    } catch (error) {
      if (!(error instanceof BlockStorageError)) throw error;
      this.#waits.wait(id, RETRY_MS);
      this.#events.volumesNotSettled(error);
      return null;
    }
  }

  /** Settles as the ending does, or resolves with null when the time is over. An error that comes later is logged. */
  #within<Outcome>(leftMs: number, ending: Promise<Outcome | null>): Promise<Outcome | null> {
    return new Promise((resolve, reject) => {
      let isLate = false;
      const timer = this.#clock.setTimer(leftMs, () => {
        isLate = true;
        resolve(null);
      });
      ending
        .finally(() => timer.cancel())
        .then(resolve, (error: Error) => (isLate ? this.#events.volumesNotSettled(error) : reject(error)));
    });
  }
}
