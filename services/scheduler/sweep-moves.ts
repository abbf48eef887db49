import { schedulerRequestsSubject } from "../../adapters/nats/streams.ts";
import type { MoveStore } from "../../core/cell/move-store.ts";
import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { SchedulerEvents } from "./events.ts";
import type { SchedulerBus } from "./ports.ts";
import type { SchedulerSettings } from "./settings.ts";

/** Carries on the accepted moves that nobody does: their messages go to the work queue (again), where they are safe until they end. */
export class MoveSweep {
  readonly #store: Pick<MoveStore, "staleMoves">;
  readonly #bus: SchedulerBus;
  readonly #events: SchedulerEvents;
  readonly #settings: SchedulerSettings;
  readonly #ticker: Ticker;

  constructor(
    deps: {
      readonly store: Pick<MoveStore, "staleMoves">;
      readonly bus: SchedulerBus;
      readonly clock: Clock;
      readonly events: SchedulerEvents;
    },
    settings: SchedulerSettings,
  ) {
    this.#store = deps.store;
    this.#bus = deps.bus;
    this.#events = deps.events;
    this.#settings = settings;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: settings.sweepMs,
      work: () => this.sweep(),
      onError: (error) => deps.events.sweepFailed(error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** One round. Rejects when the store or the bus could not be asked; what was left over is found by a later round. */
  async sweep(): Promise<void> {
    const stale = await this.#store.staleMoves(this.#settings.staleMs, this.#settings.sweepLimit);
    if (stale.length === 0) return;
    // No message id: the stream would drop it as a repetition of one that was lost on its way out.
    const queue = (move: (typeof stale)[number]) =>
      this.#bus.publish(
        schedulerRequestsSubject,
        ScheduleRequest.encode({ server: undefined, move: move.request }).finish(),
      );
    const done = await Promise.allSettled(stale.map(queue));
    this.#events.swept(stale.length, 0);
    for (const result of done) if (result.status === "rejected") throw result.reason;
  }
}
