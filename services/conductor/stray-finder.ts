import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";

const STRAYS_MAX = 100;
/** How many consumers one look examines. The next look continues after them. */
const LOOK_AT = 10_000;

/**
 * Looks for allocations that match no server and no move of the cell, some thousands at a time, and reports those that two looks in a row
 * have found. It releases nothing. That is done by `berth audit --heal` at an operator's request.
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

  /** Performs one look. Rejects when the database does not answer. */
  async look(): Promise<void> {
    const look = { after: this.#after, lookAt: LOOK_AT, again: [...this.#seen], limit: STRAYS_MAX };
    const { strays, next } = await this.#store.strays(look);
    this.#after = next;
    this.#events.strays(strays.filter((uuid) => this.#seen.has(uuid)));
    this.#seen = new Set(strays);
  }
}
