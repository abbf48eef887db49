import { cellEventsSubject } from "../../adapters/nats/streams.ts";
import { CellEvent } from "../../proto/gen/berth/cell.ts";
import { Batcher } from "../../runtime/batcher.ts";
import type { Clock } from "../../runtime/clock.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorBus } from "./ports.ts";

/** Maximum number of events that wait to be sent. Further events are dropped. */
const QUEUED_MAX = 5_000;
/** Maximum number of events in one message. */
const MESSAGE_EVENTS_MAX = 64;
/**
 * Minimum time between two messages. A message costs the bus, the conductor and each reader far more than one more event in it. An event
 * that comes alone never waits.
 */
const SPACING_MS = 20;
/** A longer reason is cut, so that a message stays far below the bus' limit. */
const REASON_CHARS_MAX = 1_000;

/** Tells the API tier what happened, without a guarantee: an event may be lost, or come twice. A reader that needs certainty reads the cell's database. */
export class EventPublisher {
  readonly #cell: string;
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  readonly #messages: Batcher<CellEvent, void>;

  constructor(options: {
    readonly bus: ConductorBus;
    readonly cell: string;
    readonly clock: Clock;
    readonly events: ConductorEvents;
  }) {
    const { bus, cell } = options;
    this.#cell = cell;
    this.#clock = options.clock;
    this.#events = options.events;
    this.#messages = new Batcher({
      run: async (events) => {
        await bus.publish(cellEventsSubject(cell), messageOf(events));
        return events.map((): void => undefined);
      },
      maxItems: MESSAGE_EVENTS_MAX,
      maxQueued: QUEUED_MAX,
      spacingMs: SPACING_MS,
      spacingMsMax: SPACING_MS,
    });
  }

  tell({ kind, serverUuid, host, reason }: Pick<CellEvent, "kind" | "serverUuid" | "host" | "reason">): void {
    const atMs = this.#clock.now();
    const event = {
      kind,
      serverUuid,
      host,
      reason: reason.slice(0, REASON_CHARS_MAX),
      cell: this.#cell,
      atMs,
      more: [],
    };
    this.#messages.submit(event).catch((error: unknown) => this.#events.eventLost(error));
  }
}

function messageOf([first, ...more]: readonly CellEvent[]): Uint8Array {
  return encodeMessage(CellEvent, { ...first!, more });
}
