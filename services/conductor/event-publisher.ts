import { cellEventsSubject } from "../../adapters/nats/streams.ts";
import { CellEvent } from "../../proto/gen/berth/cell.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorBus } from "./ports.ts";

/** Maximum number of events in flight. Further events are dropped. */
const PUBLISHES_OUT_MAX = 5_000;

/** Tells the API tier what happened, without a guarantee. A reader that needs certainty reads the cell's database. */
export class EventPublisher {
  readonly #bus: ConductorBus;
  readonly #cell: string;
  readonly #clock: Clock;
  readonly #events: ConductorEvents;
  #out = 0;

  constructor(options: {
    readonly bus: ConductorBus;
    readonly cell: string;
    readonly clock: Clock;
    readonly events: ConductorEvents;
  }) {
    this.#bus = options.bus;
    this.#cell = options.cell;
    this.#clock = options.clock;
    this.#events = options.events;
  }

  tell(event: Pick<CellEvent, "kind" | "serverUuid" | "host" | "reason">): void {
    if (this.#out >= PUBLISHES_OUT_MAX) {
      this.#events.eventLost("too many on their way");
      return;
    }
    this.#out += 1;
    const data = CellEvent.encode({ ...event, cell: this.#cell, atMs: this.#clock.now() }).finish();
    this.#bus
      .publish(cellEventsSubject(this.#cell), data)
      .catch((error) => this.#events.eventLost(error))
      .finally(() => {
        this.#out -= 1;
      });
  }
}
