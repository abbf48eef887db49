import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";

const STRAYS_MAX = 100;
/** How many consumers one look goes through; the next look goes on from there. */
const LOOK_AT = 10_000;

/**
 * Looks for allocations, some thousands at a time, that match no server and no move of the cell, and reports those that two looks in a row have seen. Gives nothing
 * back: that is `berth audit --heal`, which an operator asks for.
 */
export class StrayFinder {
  readonly #store: Pick<ConductorStore, "strays">;
  readonly #events: ConductorEvents;
  readonly #ticker: Ticker;
  #seen: ReadonlySet<string> = new Set();
  #after: string | null = null;

  constructor(options: {
    readonly store: Pick<ConductorStore, "strays">;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly settings: Pick<ConductorSettings, "strayLookMs">;
  }) {
    const { clock, events, settings } = options;
    this.#store = options.store;
    this.#events = events;
    this.#ticker = new Ticker({
      clock,
      pauseMs: settings.strayLookMs,
      work: () => this.look(),
      onError: (error) => events.databaseFailed("strays", error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** One look. Rejects when the database does not answer. */
  async look(): Promise<void> {
    const look = { after: this.#after, lookAt: LOOK_AT, again: [...this.#seen], limit: STRAYS_MAX };
    const { strays, next } = await this.#store.strays(look);
    this.#after = next;
    this.#events.strays(strays.filter((uuid) => this.#seen.has(uuid)));
    this.#seen = new Set(strays);
  }
}
