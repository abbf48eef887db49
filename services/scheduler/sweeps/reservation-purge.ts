import type { ReservationStore } from "../../../core/stores/api/reservation-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Ticker } from "../../../runtime/ticker.ts";
import type { SchedulerEvents } from "../events.ts";

const PAUSE_MS = 60_000;
/** Maximum number of reservations that one transaction deletes. */
const BATCH_MAX = 1_000;

/**
 * Deletes old reservations, which are the decisions on calls for several servers. All schedulers run it; a reservation that one has deleted
 * is not found by the others.
 */
export class ReservationPurge {
  readonly #store: Pick<ReservationStore, "purge">;
  readonly #keptMs: number;
  readonly #ticker: Ticker;

  constructor(
    deps: {
      readonly store: Pick<ReservationStore, "purge">;
      readonly clock: Clock;
      readonly events: Pick<SchedulerEvents, "sweepFailed">;
    },
    settings: { readonly reservationsKeptMs: number },
  ) {
    this.#store = deps.store;
    this.#keptMs = settings.reservationsKeptMs;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: PAUSE_MS,
      work: () => this.purge(),
      onError: (error) => deps.events.sweepFailed(error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** Runs one round, batch after batch until no old reservation is left. Rejects when the store could not be asked. */
  async purge(): Promise<void> {
    let purged = BATCH_MAX;
    while (purged === BATCH_MAX) purged = await this.#store.purge(this.#keptMs, BATCH_MAX);
  }
}
