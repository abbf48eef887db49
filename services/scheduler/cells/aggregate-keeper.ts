import { AggregateIndex } from "../../../core/scheduling/aggregate-index.ts";
import type { AggregateRecord } from "../../../core/scheduling/aggregate-record.ts";
import type { LiveCellFacts } from "../../../core/scheduling/live-cell-facts.ts";
import type { AggregateStore } from "../../../core/stores/api/aggregate-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Ticker } from "../../../runtime/ticker.ts";
import type { SchedulerEvents } from "../events.ts";

/** The store of a cloud without aggregates. */
export const NO_AGGREGATES: Pick<AggregateStore, "version" | "aggregates"> = {
  version: async () => 0,
  aggregates: async () => [],
};

/**
 * The cloud's aggregates, at most about a second old, handed to the host facts of every cell. Reads the aggregates only when their version
 * has risen, and keeps the old ones while the database is unreachable.
 */
export class AggregateKeeper {
  readonly #store: Pick<AggregateStore, "version" | "aggregates">;
  readonly #factsOfCells: () => Iterable<LiveCellFacts>;
  readonly #defaultZone: () => string;
  readonly #ticker: Ticker;
  readonly #told = new WeakMap<LiveCellFacts, AggregateIndex>();
  #version = -1;
  #records: readonly AggregateRecord[] = [];
  #index: AggregateIndex;

  constructor(
    deps: {
      readonly store: Pick<AggregateStore, "version" | "aggregates">;
      readonly factsOfCells: () => Iterable<LiveCellFacts>;
      /** Returns the zone, as it is set now, of hosts that are in no zone of an aggregate. */
      readonly defaultZone: () => string;
      readonly clock: Clock;
      readonly events: Pick<SchedulerEvents, "refreshFailed">;
    },
    options: { readonly pollMs: number },
  ) {
    this.#store = deps.store;
    this.#factsOfCells = deps.factsOfCells;
    this.#defaultZone = deps.defaultZone;
    this.#index = new AggregateIndex([], deps.defaultZone());
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: () => this.refresh(),
      onError: (error) => deps.events.refreshFailed("aggregates", error),
    });
  }

  /** Returns the same object as long as nothing has changed. */
  get index(): AggregateIndex {
    return this.#index;
  }

  /**
   * Reads the aggregates once, then regularly. Rejects when the first reading fails, because without aggregates hosts would be in no zone.
   */
  async start(): Promise<void> {
    await this.refresh();
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** Reads the aggregates if they have changed, and hands them to every cell, including cells that were added since the last time. */
  async refresh(): Promise<void> {
    const version = await this.#store.version();
    const zone = this.#defaultZone();
    const isNew = version !== this.#version;
    if (isNew) this.#records = await this.#store.aggregates();
    // The aggregates were read after their version, so a change between the two readings is read again the next time.
    this.#version = version;
    if (isNew || zone !== this.#index.defaultZone) this.#index = new AggregateIndex(this.#records, zone);
    for (const facts of this.#factsOfCells()) this.tell(facts);
  }

  /** Hands the aggregates to a cell. A new cell needs them before it is searched, since aggregates may close its hosts to a project. */
  tell(facts: LiveCellFacts): void {
    if (this.#told.get(facts) === this.#index) return;
    facts.setAggregates(this.#index);
    this.#told.set(facts, this.#index);
  }
}
