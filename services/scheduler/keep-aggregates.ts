import type { AggregateRecord, AggregateStore } from "../../core/cell/aggregate-store.ts";
import { AggregateIndex } from "../../core/scheduling/aggregate-index.ts";
import type { LiveCellFacts } from "../../core/scheduling/live-cell-facts.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { SchedulerEvents } from "./events.ts";

/** A store of a cloud without aggregates. */
export const NO_AGGREGATES: Pick<AggregateStore, "version" | "aggregates"> = {
  version: async () => 0,
  aggregates: async () => [],
};

/**
 * The cloud's aggregates, as of about a second ago, told to the facts of every cell. Reads them only when their version has risen.
 * With the database away they stay as they are.
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
      /** The zone of hosts that are in none, as it is set now. */
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

  /** The same as long as nothing changed. */
  get index(): AggregateIndex {
    return this.#index;
  }

  /** Reads once, then again and again. Rejects when they cannot be read at all: without them, hosts would be in no zone. */
  async start(): Promise<void> {
    await this.refresh();
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** Cells that came since the last time are told, too. */
  async refresh(): Promise<void> {
    const version = await this.#store.version();
    const zone = this.#defaultZone();
    const isNew = version !== this.#version;
    if (isNew) this.#records = await this.#store.aggregates();
    // Read after the version: what changed in between is read again the next time.
    this.#version = version;
    if (isNew || zone !== this.#index.defaultZone) this.#index = new AggregateIndex(this.#records, zone);
    for (const facts of this.#factsOfCells()) this.tell(facts);
  }

  /** For a cell that comes: it must not be asked for hosts before it knows whom its aggregates are closed to. */
  tell(facts: LiveCellFacts): void {
    if (this.#told.get(facts) === this.#index) return;
    facts.setAggregates(this.#index);
    this.#told.set(facts, this.#index);
  }
}
