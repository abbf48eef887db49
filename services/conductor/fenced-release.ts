import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";

const PAUSE_MS = 5_000;

/**
 * Releases what is held on hosts that an operator has forced down, for guests that moved away or could not be destroyed. Forcing a host
 * down asserts that it runs nothing. If such a host comes back, its guests are compared before it is up, like those of any other host.
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

  /** Performs one round. Rejects when the database does not answer. */
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
