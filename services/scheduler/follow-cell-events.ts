import { cellEventsForSchedulers, cellStreams } from "../../adapters/nats/streams.ts";
import type { SoftState } from "../../core/scheduling/soft-state.ts";
import { CellEvent, EventKind } from "../../proto/gen/berth/cell.ts";
import type { BusMessage, Subscription } from "../../runtime/bus.ts";
import type { SchedulerEvents } from "./events.ts";
import type { SchedulerCell } from "./ports.ts";

const EVENTS_IN_FLIGHT_MAX = 1_000;

/** How often builds failed of late, by cell and host: a copy of the soft state's counts that searches can read at once. */
export class BuildFailureCounts {
  readonly #softState: SoftState;
  readonly #onChanged: (cell: string, host: string) => void;
  #byCell: ReadonlyMap<string, ReadonlyMap<string, number>> = new Map();

  /** `onChanged`: the host's count is not as before. */
  constructor(softState: SoftState, onChanged: (cell: string, host: string) => void) {
    this.#softState = softState;
    this.#onChanged = onChanged;
  }

  of(cell: string): ReadonlyMap<string, number> | undefined {
    return this.#byCell.get(cell);
  }

  async refresh(): Promise<void> {
    const byCell = new Map<string, Map<string, number>>();
    for (const [key, count] of await this.#softState.buildFailures()) {
      const slash = key.indexOf("/");
      const cell = key.slice(0, slash);
      const hosts = byCell.get(cell) ?? new Map<string, number>();
      byCell.set(cell, hosts.set(key.slice(slash + 1), count));
    }
    const before = this.#byCell;
    this.#byCell = byCell;
    for (const cell of new Set([...before.keys(), ...byCell.keys()])) {
      for (const host of changedKeys(before.get(cell), byCell.get(cell))) this.#onChanged(cell, host);
    }
  }

  failed(cell: string, host: string): Promise<void> {
    return this.#softState.recordBuildFailure(cell, host);
  }

  /** Costs a call only for a host that had failed. */
  async succeeded(cell: string, host: string): Promise<void> {
    if (this.of(cell)?.has(host)) await this.#softState.clearBuildFailures(cell, host);
  }
}

function changedKeys(before: ReadonlyMap<string, number> = new Map(), now: ReadonlyMap<string, number> = new Map()) {
  return [...new Set([...before.keys(), ...now.keys()])].filter((key) => before.get(key) !== now.get(key));
}

/** Learns from a cell's events which hosts fail; each event reaches one of the schedulers. */
export class CellEvents {
  readonly #cell: SchedulerCell;
  readonly #failures: BuildFailureCounts;
  readonly #events: SchedulerEvents;
  #subscription: Subscription | null = null;
  #trying: Promise<void> | null = null;
  #stopped = false;

  constructor(options: {
    readonly cell: SchedulerCell;
    readonly failures: BuildFailureCounts;
    readonly events: SchedulerEvents;
  }) {
    this.#cell = options.cell;
    this.#failures = options.failures;
    this.#events = options.events;
  }

  /**
   * Begins to listen, unless it does already; in the background, since placing needs no events and a cell's bus may be
   * away. Call it again to have it tried again.
   */
  listen(): void {
    if (this.#subscription || this.#stopped || this.#trying) return;
    this.#trying = this.#subscribe()
      .catch((error) => this.#events.refreshFailed(`events of cell ${this.#cell.name}`, error))
      .finally(() => {
        this.#trying = null;
      });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#trying;
    await this.#subscription?.stop();
  }

  async #subscribe(): Promise<void> {
    const { bus, name } = this.#cell;
    await bus.ensureStreams(cellStreams(name));
    const options = { maxInFlight: EVENTS_IN_FLIGHT_MAX };
    this.#subscription = await bus.consume(cellEventsForSchedulers, options, (message) => this.#take(message));
  }

  #take(message: BusMessage): void {
    const event = decodeEvent(message.data);
    if (event?.kind === EventKind.EVENT_KIND_ATTEMPT_FAILED) void this.#failures.failed(this.#cell.name, event.host);
    if (event?.kind === EventKind.EVENT_KIND_SERVER_ACTIVE) void this.#failures.succeeded(this.#cell.name, event.host);
    message.ack();
  }
}

/** Null: not an event; it teaches nothing. */
function decodeEvent(data: Uint8Array): CellEvent | null {
  try {
    return CellEvent.decode(data);
  } catch {
    return null;
  }
}
