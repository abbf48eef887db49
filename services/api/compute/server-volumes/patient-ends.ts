import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import { BlockStorageError } from "../../../../core/stores/block-storage-error.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";
import { GrowingWaits } from "../../growing-waits.ts";
import type { SettledVolumes } from "./server-volumes.ts";

/** How many attachments may fail to end in one round before the others wait for the next one, since each may take Cinder's whole time to answer. */
const FAILURES_MAX = 3;
/** The first wait of an attachment that Cinder does not end yet, since it still fills the volume. Each further wait is twice as long. */
const NOT_NOW_MS = 2_000;
/** The first wait of an attachment about which Cinder gave no answer. */
const RETRY_MS = 10_000;
const WAIT_MS_MAX = 60_000;

/** Ends attachments in rounds. One that Cinder does not end now stays as it is, is logged, and is tried again later. */
export class PatientEnds implements Pick<VolumeStore, "confirmAttached" | "release" | "endAttachment"> {
  readonly #volumes: SettledVolumes;
  readonly #events: Pick<ApiEvents, "volumesNotSettled">;
  /** The volumes whose attachment could not be ended, by their ids, so that the others have their turn. */
  readonly #waits: GrowingWaits;
  #failures = 0;

  constructor(deps: {
    readonly volumes: SettledVolumes;
    readonly events: Pick<ApiEvents, "volumesNotSettled">;
    readonly clock: Clock;
  }) {
    this.#volumes = deps.volumes;
    this.#events = deps.events;
    this.#waits = new GrowingWaits(deps.clock, { msMax: WAIT_MS_MAX });
  }

  beginRound(): void {
    this.#failures = 0;
  }

  confirmAttached(...by: Parameters<VolumeStore["confirmAttached"]>): Promise<boolean> {
    return this.#volumes.confirmAttached(...by);
  }

  async release(id: string, taskId: string): Promise<boolean> {
    return (await this.#tryIn(id, async () => (await this.#volumes.release(id, taskId)) || null)) ?? false;
  }

  endAttachment(id: string, attachmentId: string, neverRan: boolean): Promise<"deleted" | "released" | null> {
    return this.#tryIn(id, () => this.#volumes.endAttachment(id, attachmentId, neverRan));
  }

  /** `end` resolves with null if nothing has ended. */
  async #tryIn<Outcome>(id: string, end: () => Promise<Outcome | null>): Promise<Outcome | null> {
    if (this.#failures >= FAILURES_MAX || this.#waits.isWaiting(id)) return null;
    try {
      const outcome = await end();
      if (outcome === null) this.#waits.wait(id, NOT_NOW_MS);
      else this.#waits.end(id);
      return outcome;
    } catch (error) {
      if (!(error instanceof BlockStorageError)) throw error;
      this.#failures += 1;
      this.#waits.wait(id, RETRY_MS);
      this.#events.volumesNotSettled(error);
      return null;
    }
  }
}
