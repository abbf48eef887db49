import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";

/** Renews this conductor's lease. When it stops renewing, other conductors take over its tasks. */
export class LeaseKeeper {
  readonly #renew: () => Promise<void>;
  readonly #giveUp: () => Promise<void>;
  readonly #ticker: Ticker;
  readonly #events: ConductorEvents;

  constructor(options: {
    readonly store: Pick<ConductorStore, "renewLease" | "giveUpLease">;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly settings: Pick<ConductorSettings, "conductorId" | "name" | "leaseMs" | "renewMs">;
  }) {
    const { store, clock, events, settings } = options;
    const { conductorId: id, name, leaseMs } = settings;
    this.#events = events;
    this.#renew = () => store.renewLease({ id, name, leaseMs });
    this.#giveUp = () => store.giveUpLease(id);
    this.#ticker = new Ticker({
      clock,
      pauseMs: settings.renewMs,
      work: this.#renew,
      onError: (error) => events.databaseFailed("lease", error),
    });
  }

  /** Resolves when the lease is held. Rejects when the database does not answer. */
  async start(): Promise<void> {
    await this.#renew();
    this.#ticker.start();
  }

  /** Gives up the lease, so that others may take over at once. If the database does not answer, they take over when the lease runs out. */
  async stop(): Promise<void> {
    await this.#ticker.stop();
    await this.#giveUp().catch((error) => this.#events.databaseFailed("lease", error));
  }
}
