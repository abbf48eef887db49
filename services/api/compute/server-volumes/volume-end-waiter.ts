import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";

/** How long an answer waits for the volumes of a deleted server. */
const WAIT_MS = 5_000;
/**
 * How long after the deletion the volumes count. Cinder has 75 s to end an attachment, and is asked again 10 s later if it has failed, so this is enough for two
 * attempts. It is less than the five minutes for which clients commonly wait for a deletion.
 */
const ENDED_LATELY_MS = 180_000;
/** How often a caller that waits looks at the volumes, and how many callers wait at a time. */
const LOOK_MS = 200;
const WAITING_MAX = 16;
/** How long nobody waits any longer after a wait was in vain. */
const IN_VAIN_MS = 10_000;

/**
 * Tells whether a deleted server still has volumes, and waits for their end for some seconds. Nova deletes a server only after Cinder has taken its volumes back,
 * so whoever has waited for the end of a server expects to be able to delete its volumes. The settlers of all apis give them back; this class only looks.
 */
export class VolumeEndWaiter {
  readonly #volumes: Pick<VolumeStore, "volumesOfServers">;
  readonly #clock: Clock;
  readonly #events: Pick<ApiEvents, "volumesNotSettled">;
  #waiting = 0;
  #inVainUntilMs = Number.NEGATIVE_INFINITY;

  constructor(deps: {
    readonly volumes: Pick<VolumeStore, "volumesOfServers">;
    readonly clock: Clock;
    readonly events: Pick<ApiEvents, "volumesNotSettled">;
  }) {
    this.#volumes = deps.volumes;
    this.#clock = deps.clock;
    this.#events = deps.events;
  }

  /**
   * Tells whether a server that its cell has deleted is gone with all its volumes. It waits for some seconds before it says no, since Cinder may be slow, or a
   * host may still have a guest; it says so at once while many callers wait, and for some seconds after a wait was in vain. A server that was deleted over
   * three minutes ago is gone, whatever Cinder says, and so is one whose volumes cannot be read. Never rejects. Cost: a query, and five a second while it waits.
   */
  async awaitEnd({ uuid, deletedAtMs }: Pick<Server, "uuid" | "deletedAtMs">): Promise<boolean> {
    if (deletedAtMs === null || this.#clock.now() - deletedAtMs > ENDED_LATELY_MS) return true;
    try {
      return !(await this.#hasVolumes(uuid)) || (this.#mayWait() && (await this.#wait(uuid)));
    } catch (error) {
      this.#events.volumesNotSettled(error);
      return true;
    }
  }

  #mayWait(): boolean {
    return this.#waiting < WAITING_MAX && this.#clock.monotonic() >= this.#inVainUntilMs;
  }

  /** Resolves with true at the end of the volumes, and with false when the wait was in vain. */
  async #wait(serverUuid: string): Promise<boolean> {
    const untilMs = this.#clock.monotonic() + WAIT_MS;
    this.#waiting += 1;
    try {
      while (this.#clock.monotonic() < untilMs) {
        await new Promise<void>((resolve) => {
          this.#clock.setTimer(LOOK_MS, resolve);
        });
        if (!(await this.#hasVolumes(serverUuid))) return true;
      }
      this.#inVainUntilMs = this.#clock.monotonic() + IN_VAIN_MS;
      return false;
    } finally {
      this.#waiting -= 1;
    }
  }

  async #hasVolumes(serverUuid: string): Promise<boolean> {
    return (await this.#volumes.volumesOfServers([serverUuid])).length > 0;
  }
}
