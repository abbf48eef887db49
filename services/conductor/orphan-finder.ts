import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";

const ORPHANS_MAX = 100;
/** How many consumers one look examines. The next look continues after them. */
const LOOK_AT = 10_000;

/**
 * Looks for allocations that match no server and no move of the cell, some thousands at a time, and reports those that two looks in a row
 * have found. It releases nothing. That is done by `berth audit --heal` at an operator's request.
 */
export class OrphanFinder {
  readonly #store: Pick<ConductorStore, "orphans">;
  readonly #events: ConductorEvents;
  readonly #ticker: Ticker;
  #seen: ReadonlySet<string> = new Set();
  #after: string | null = null;

  constructor(options: {
    readonly store: Pick<ConductorStore, "orphans">;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly settings: Pick<ConductorSettings, "orphanLookMs">;
  }) {
    const { clock, events, settings } = options;
    this.#store = options.store;
    this.#events = events;
    this.#ticker = new Ticker({
      clock,
      pauseMs: settings.orphanLookMs,
      work: () => this.look(),
      onError: (error) => events.databaseFailed("orphans", error),
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
    const look = { after: this.#after, lookAt: LOOK_AT, again: [...this.#seen], limit: ORPHANS_MAX };
    const { orphans, next } = await this.#store.orphans(look);
    this.#after = next;
    this.#events.orphans(orphans.filter((uuid) => this.#seen.has(uuid)));
    this.#seen = new Set(orphans);
  }
}
