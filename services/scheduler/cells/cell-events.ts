import { cellEventsForSchedulers, cellStreams } from "../../../adapters/nats/streams.ts";
import { CellEvent, EventKind } from "../../../proto/gen/berth/cell.ts";
import type { BusMessage, Subscription } from "../../../runtime/bus.ts";
import type { SchedulerEvents } from "../events.ts";
import type { SchedulerCell } from "../ports.ts";
import type { BuildFailureCounts } from "./build-failure-counts.ts";

const EVENTS_IN_FLIGHT_MAX = 1_000;

/** Learns from a cell's events on which hosts builds fail. Each event reaches one of the schedulers. */
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
   * Begins to listen in the background, unless it is listening already. Placing needs no events and the cell's bus may be unreachable, so a
   * failure is not reported to the caller. Call it again to retry.
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

  /** Counts the builds of the cell's own hosts alone: the counts of all cells are in one place, which any other name that a cell sends would fill. */
  #take(message: BusMessage): void {
    const { hosts } = this.#cell.view;
    for (const { kind, host } of eventsOf(message.data)) {
      if (hosts.slotOf(host) < 0) continue;
      if (kind === EventKind.EVENT_KIND_ATTEMPT_FAILED) void this.#failures.failed(this.#cell.name, host);
      if (kind === EventKind.EVENT_KIND_SERVER_ACTIVE) void this.#failures.succeeded(this.#cell.name, host);
    }
    message.ack();
  }
}

/** Returns no events for a message that cannot be decoded. */
function eventsOf(data: Uint8Array): readonly CellEvent[] {
  try {
    const first = CellEvent.decode(data);
    return [first, ...first.more];
  } catch {
    return [];
  }
}
