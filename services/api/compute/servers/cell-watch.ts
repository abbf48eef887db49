import { cellStreams } from "../../../../adapters/nats/streams.ts";
import type { Subscription } from "../../../../runtime/bus.ts";
import type { Clock, Timer } from "../../../../runtime/clock.ts";
import type { ApiEvents } from "../../events.ts";
import type { CellPort } from "../../ports.ts";
import { consumeCellEvents } from "./consume-cell-events.ts";
import type { DeletionMarker } from "./deletion-marker.ts";

const RETRY_MS = 5_000;

/**
 * Reads the events of all cells. Each cell has its own state: **trying** (creates its streams and its consumer, and tries again after
 * `RETRY_MS` when that failed) → **watched**. A cell whose bus is down must not hold up the api or the other cells.
 */
export class CellWatch {
  readonly #cells: readonly CellPort[];
  readonly #deps: { readonly marker: DeletionMarker; readonly events: ApiEvents; readonly clock: Clock };
  readonly #retries = new Map<string, Timer>();
  readonly #trying = new Set<Promise<void>>();
  #subscriptions: Subscription[] = [];
  #closed = false;

  constructor(
    cells: readonly CellPort[],
    deps: { readonly marker: DeletionMarker; readonly events: ApiEvents; readonly clock: Clock },
  ) {
    this.#cells = cells;
    this.#deps = deps;
  }

  /** Resolves when each cell is watched or its first try has failed. */
  async start(): Promise<void> {
    await Promise.all(this.#cells.map((cell) => this.#try(cell)));
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const retry of this.#retries.values()) retry.cancel();
    await Promise.all(this.#trying);
    await Promise.all(this.#subscriptions.map((subscription) => subscription.stop()));
    this.#subscriptions = [];
  }

  #try(cell: CellPort): Promise<void> {
    const trying = this.#watch(cell).finally(() => this.#trying.delete(trying));
    this.#trying.add(trying);
    return trying;
  }

  async #watch(cell: CellPort): Promise<void> {
    try {
      await cell.bus.ensureStreams(cellStreams(cell.name));
      this.#subscriptions.push(await consumeCellEvents(cell, this.#deps));
    } catch (error) {
      if (this.#closed) return;
      this.#deps.events.cellUnwatched(cell.name, error);
      this.#retries.set(
        cell.name,
        this.#deps.clock.setTimer(RETRY_MS, () => void this.#try(cell)),
      );
    }
  }
}
