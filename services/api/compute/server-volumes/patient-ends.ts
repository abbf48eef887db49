import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";
import type { SettledVolumes } from "./server-volumes.ts";

/** How many attachments may fail to end in one round before the others wait for the next one, since each may take Cinder's whole time to answer. */
const FAILURES_MAX = 3;
/** How long an attachment that could not be ended waits, so that the others have their turn. */
const RETRY_MS = 10_000;

/** Ends attachments in rounds. One that Cinder does not end now stays as it is, is logged, and is tried again later. */
export class PatientEnds implements Pick<VolumeStore, "confirmAttached" | "release" | "endAttachment"> {
  readonly #volumes: SettledVolumes;
  readonly #events: Pick<ApiEvents, "volumesNotSettled">;
  readonly #clock: Clock;
  /** When volumes whose attachment could not be ended may be tried again, by the monotonic clock. */
  readonly #waiting = new Map<string, number>();
  #failures = 0;

  constructor(deps: {
    readonly volumes: SettledVolumes;
    readonly events: Pick<ApiEvents, "volumesNotSettled">;
    readonly clock: Clock;
  }) {
    this.#volumes = deps.volumes;
    this.#events = deps.events;
    this.#clock = deps.clock;
  }

  beginRound(): void {
    this.#failures = 0;
    for (const [id, untilMs] of this.#waiting) if (untilMs <= this.#clock.monotonic()) this.#waiting.delete(id);
  }

  confirmAttached(...by: Parameters<VolumeStore["confirmAttached"]>): Promise<boolean> {
    return this.#volumes.confirmAttached(...by);
  }

  async release(id: string, taskId: string): Promise<boolean> {
    return (await this.#tryIn(id, () => this.#volumes.release(id, taskId))) ?? false;
  }

  endAttachment(id: string, attachmentId: string, neverRan: boolean): Promise<"deleted" | "released" | null> {
    return this.#tryIn(id, () => this.#volumes.endAttachment(id, attachmentId, neverRan));
  }

  async #tryIn<Outcome>(id: string, end: () => Promise<Outcome>): Promise<Outcome | null> {
    if (this.#failures >= FAILURES_MAX || this.#waiting.has(id)) return null;
    try {
      return await end();
    } catch (error) {
      if (!(error instanceof BlockStorageError)) throw error;
      this.#failures += 1;
      this.#waiting.set(id, this.#clock.monotonic() + RETRY_MS);
      this.#events.volumesNotSettled(error);
      return null;
    }
  }
}
