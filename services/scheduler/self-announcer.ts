import type { OwnSlice } from "../../core/scheduling/weighers/own-slice.ts";
import type { SoftState } from "../../core/stores/soft-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { BuildFailureCounts } from "./cells/build-failure-counts.ts";
import type { SchedulerEvents } from "./events.ts";
import type { SchedulerSettings } from "./settings.ts";

/**
 * Announces this scheduler to the others, with its figures for dashboards, and learns from their announcements which schedulers are alive and on which hosts builds fail.
 */
export class SelfAnnouncer {
  readonly #softState: SoftState;
  readonly #slice: OwnSlice;
  readonly #failures: BuildFailureCounts;
  readonly #events: SchedulerEvents;
  readonly #settings: SchedulerSettings;
  readonly #ticker: Ticker;

  constructor(
    deps: {
      readonly softState: SoftState;
      readonly slice: OwnSlice;
      readonly failures: BuildFailureCounts;
      readonly clock: Clock;
      readonly events: SchedulerEvents;
    },
    settings: SchedulerSettings,
  ) {
    this.#softState = deps.softState;
    this.#slice = deps.slice;
    this.#failures = deps.failures;
    this.#events = deps.events;
    this.#settings = settings;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: settings.announceMs,
      work: () => this.#announce(),
      onError: (error) => deps.events.refreshFailed("schedulers", error),
    });
  }

  async start(): Promise<void> {
    await this.#announce();
    this.#ticker.start();
  }

  async close(): Promise<void> {
    await this.#ticker.stop();
    await this.#softState.withdraw(this.#settings.schedulerId);
  }

  /** The calls are made in one turn, so that they travel to the soft state together. */
  async #announce(): Promise<void> {
    const { schedulerId, announceTtlMs } = this.#settings;
    const [members] = await Promise.all([
      this.#softState.announce(schedulerId, announceTtlMs),
      this.#softState.recordFigures(schedulerId, this.#events.figures(), announceTtlMs),
      this.#failures.refresh(),
    ]);
    this.#slice.setMembers(members);
  }
}
