import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";

/** How long the answer that a server is gone waits for its volumes, and how long after the deletion. */
const WAIT_MS = 5_000;
const ENDED_LATELY_MS = 60_000;
/** How often a caller that waits looks at the volumes, and how many callers wait at a time. */
const LOOK_MS = 200;
const WAITING_MAX = 16;
/** How long nobody waits any longer after a wait was in vain. */
const IN_VAIN_MS = 10_000;

/**
 * Lets the answer that a server is gone wait until its volumes were given back, as Nova does, so that whoever has waited for the end of the server can delete
 * its volumes. The settlers of all apis give them back; this class only looks.
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
   * Resolves when a server that its cell has deleted has no volume any longer, or after some seconds, since Cinder may be silent, or a host may still have a
   * guest. Nobody waits for a server that was deleted long ago, while many callers wait, and for some seconds after a wait was in vain. Never rejects.
   * Cost: a query, and five a second while it waits.
   */
  async awaitEnd({ uuid, deletedAtMs }: Pick<Server, "uuid" | "deletedAtMs">): Promise<void> {
    const isLate = deletedAtMs === null || this.#clock.now() - deletedAtMs > ENDED_LATELY_MS;
    if (isLate || this.#waiting >= WAITING_MAX || this.#clock.monotonic() < this.#inVainUntilMs) return;
    this.#waiting += 1;
    try {
      await this.#wait(uuid);
    } catch (error) {
      this.#events.volumesNotSettled(error);
    } finally {
      this.#waiting -= 1;
    }
  }

  async #wait(serverUuid: string): Promise<void> {
    const untilMs = this.#clock.monotonic() + WAIT_MS;
    while ((await this.#volumes.volumesOfServers([serverUuid])).length > 0) {
      if (this.#clock.monotonic() >= untilMs) {
        this.#inVainUntilMs = this.#clock.monotonic() + IN_VAIN_MS;
        return;
      }
      await new Promise<void>((resolve) => {
        this.#clock.setTimer(LOOK_MS, resolve);
      });
    }
  }
}
