import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";

const PAUSE_MS = 5_000;

/**
 * Gives back what is held, for guests that moved away or could not be destroyed, at hosts that an operator has forced down: that is the word
 * that such a host runs nothing. A host that comes back after all is compared before it is up, like any other.
 */
export class FencedRelease {
  readonly #store: Pick<ConductorStore, "fencedSources" | "releaseEvacuated">;
  readonly #events: ConductorEvents;
  readonly #ticker: Ticker;

  constructor(options: {
    readonly store: Pick<ConductorStore, "fencedSources" | "releaseEvacuated">;
    readonly clock: Clock;
    readonly events: ConductorEvents;
  }) {
    this.#store = options.store;
    this.#events = options.events;
    this.#ticker = new Ticker({
      clock: options.clock,
      pauseMs: PAUSE_MS,
      work: () => this.release(),
      onError: (error) => options.events.databaseFailed("fenced", error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** One round. Rejects when the database does not answer. */
  async release(): Promise<void> {
    const hosts = await this.#store.fencedSources();
    const fenced = hosts.map((host) => ({ host, remaining: [] }));
    const released = hosts.length === 0 ? [] : await this.#store.releaseEvacuated(fenced);
    for (const [index, host] of hosts.entries()) {
      const count = released[index]?.length ?? 0;
      if (count > 0) this.#events.evacuatedReleased(host, count);
    }
  }
}
