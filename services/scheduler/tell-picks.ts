import type { HostPick, SoftState } from "../../core/scheduling/soft-state.ts";
import type { RecentPicks } from "../../core/scheduling/weighers/recent-picks.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { SchedulerEvents } from "./events.ts";

/** How often picks are told and learned. */
const TELL_MS = 100;
/** Most picks told at a time; more would be more than the others read. */
const TOLD_MAX = 256;

/** Tells the other schedulers which hosts this one has just picked, and learns theirs. Nothing waits for it. */
export class PickTeller {
  readonly #softState: Pick<SoftState, "recordPicks" | "recentPicks">;
  readonly #schedulerId: string;
  readonly #picksOfOthers: RecentPicks;
  readonly #onChanged: (host: HostPick) => void;
  readonly #ticker: Ticker;
  #untold: HostPick[] = [];

  constructor(deps: {
    readonly softState: Pick<SoftState, "recordPicks" | "recentPicks">;
    readonly schedulerId: string;
    readonly picksOfOthers: RecentPicks;
    /** The host weighs differently from now on. */
    readonly onChanged: (host: HostPick) => void;
    readonly clock: Clock;
    readonly events: SchedulerEvents;
  }) {
    this.#softState = deps.softState;
    this.#schedulerId = deps.schedulerId;
    this.#picksOfOthers = deps.picksOfOthers;
    this.#onChanged = deps.onChanged;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: TELL_MS,
      work: () => this.exchange(),
      onError: (error) => deps.events.refreshFailed("picks of others", error),
    });
  }

  picked(cell: string, host: string): void {
    this.#untold.push({ cell, host });
    if (this.#untold.length > TOLD_MAX) this.#untold.shift();
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  async exchange(): Promise<void> {
    const untold = this.#untold;
    this.#untold = [];
    const [picks] = await Promise.all([
      this.#softState.recentPicks(this.#schedulerId),
      this.#softState.recordPicks(this.#schedulerId, untold),
    ]);
    for (const changed of this.#picksOfOthers.set(picks)) this.#onChanged(changed);
  }
}
