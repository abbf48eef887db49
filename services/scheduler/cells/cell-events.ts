import { readCellEvents } from "../../../adapters/nats/read-cell-events.ts";
import { cellEventsForSchedulers, cellStreams } from "../../../adapters/nats/streams.ts";
import { EventKind } from "../../../proto/gen/berth/cell.ts";
import type { BusMessage, Subscription } from "../../../runtime/bus.ts";
import { unlessAborted } from "../../../runtime/unless-aborted.ts";
import type { SchedulerEvents } from "../events.ts";
import type { SchedulerCell } from "../ports.ts";
import type { BuildFailureCounts } from "./build-failure-counts.ts";

const EVENTS_IN_FLIGHT_MAX = 1_000;
/** How long an event waits for the view to catch up, and then for its next delivery. Both are far shorter than the stream keeps events. */
const SEEN_DEADLINE_MS = 5_000;
const RETRY_MS = 5_000;

/** The kinds of events from which something is learned. */
const COUNTED: ReadonlySet<EventKind> = new Set([
  EventKind.EVENT_KIND_ATTEMPT_FAILED,
  EventKind.EVENT_KIND_SERVER_ACTIVE,
]);

/**
 * Learns from a cell's events on which hosts builds fail. Each event reaches one of the schedulers, so a scheduler whose view of the cell has not
 * loaded does not listen: it could not tell the cell's hosts from invented ones, and the events wait in their stream for one that can.
 */
export class CellEvents {
  readonly #cell: SchedulerCell;
  readonly #failures: BuildFailureCounts;
  readonly #events: Pick<SchedulerEvents, "refreshFailed">;
  #subscription: Subscription | null = null;
  #trying: Promise<void> | null = null;
  #hasStreams = false;
  readonly #stopping = new AbortController();

  constructor(options: {
    readonly cell: SchedulerCell;
    readonly failures: BuildFailureCounts;
    readonly events: Pick<SchedulerEvents, "refreshFailed">;
  }) {
    this.#cell = options.cell;
    this.#failures = options.failures;
    this.#events = options.events;
  }

  /**
   * Begins to listen in the background as soon as the cell's view has loaded, unless it is listening already. Placing needs no events, and the cell's bus and
   * database may be unreachable, so a failure is not reported to the caller. Call it again to retry.
   */
  listen(): void {
    if (this.#subscription || this.#stopping.signal.aborted || this.#trying) return;
    this.#trying = this.#subscribe()
      .catch((error) => this.#events.refreshFailed(`events of cell ${this.#cell.name}`, error))
      .finally(() => {
        this.#trying = null;
      });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#trying;
    await this.#subscription?.stop();
  }

  async #subscribe(): Promise<void> {
    const { bus, name } = this.#cell;
    // The conductors need the streams, whether this scheduler listens or not.
    if (!this.#hasStreams) await bus.ensureStreams(cellStreams(name));
    this.#hasStreams = true;
    if (!(await this.#viewLoads())) return;
    const options = { maxInFlight: EVENTS_IN_FLIGHT_MAX };
    this.#subscription = await bus.consume(cellEventsForSchedulers, options, (message) => void this.#take(message));
  }

  /** Waits a while for the view to load. A scheduler that has just started would otherwise learn nothing until it is told to listen again, seconds later. */
  async #viewLoads(): Promise<boolean> {
    const { source } = this.#cell;
    const { signal } = this.#stopping;
    if (!source.ready) await unlessAborted(source.waitUntilSeen(SEEN_DEADLINE_MS), signal).catch(() => undefined);
    return source.ready && !signal.aborted;
  }

  /**
   * Counts the builds of the cell's own hosts alone: the counts of all cells are in one place, which any other name that a cell sends would fill. A host
   * that the view lacks may be newer than the view, so the events of a message with such a host are judged when the view shows all that was committed by now. As
   * long as it does not, the message is delivered again, perhaps to another scheduler. Never rejects.
   */
  async #take(message: BusMessage): Promise<void> {
    const { source } = this.#cell;
    const told = (readCellEvents(message.data) ?? []).filter(({ kind }) => COUNTED.has(kind));
    try {
      if (!told.every(({ host }) => this.#has(host))) await source.waitUntilSeen(SEEN_DEADLINE_MS);
    } catch {
      message.retry(RETRY_MS);
      return;
    }
    for (const { kind, host } of told) {
      if (!this.#has(host)) continue;
      if (kind === EventKind.EVENT_KIND_ATTEMPT_FAILED) void this.#failures.failed(this.#cell.name, host);
      else void this.#failures.succeeded(this.#cell.name, host);
    }
    message.ack();
  }

  #has(host: string): boolean {
    return this.#cell.view.hosts.slotOf(host) >= 0;
  }
}
