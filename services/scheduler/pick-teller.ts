import type { HostPick } from "../../core/scheduling/host-pick.ts";
import type { RecentPicks } from "../../core/scheduling/weighers/recent-picks.ts";
import type { SoftState } from "../../core/stores/soft-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { SchedulerEvents } from "./events.ts";

/** Time between two exchanges of picks with the other schedulers. */
const TELL_MS = 100;
/** After this many exchanges without a pick of any scheduler, picks are exchanged only once in `QUIET_TELL_MS`. */
const QUIET_TURNS = 10;
const QUIET_TELL_MS = 1_000;
/** Maximum number of picks that are sent at a time. The other schedulers would not read more. */
const TOLD_MAX = 256;

/** Tells the other schedulers which hosts this one has just picked, and learns their picks. No request waits for it. */
export class PickTeller {
  readonly #softState: Pick<SoftState, "recordPicks" | "recentPicks">;
  readonly #schedulerId: string;
  readonly #picksOfOthers: RecentPicks;
  readonly #onChanged: (host: HostPick) => void;
  readonly #ticker: Ticker;
  #untold: HostPick[] = [];
  /** Number of turns in a row without a pick of this scheduler or of another one. */
  #quietTurns = 0;

  constructor(deps: {
    readonly softState: Pick<SoftState, "recordPicks" | "recentPicks">;
    readonly schedulerId: string;
    readonly picksOfOthers: RecentPicks;
    /** Called for each host whose weight has changed. */
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
      pauseMs: () => (this.#untold.length === 0 && this.#quietTurns > QUIET_TURNS ? QUIET_TELL_MS : TELL_MS),
      work: () => this.#takeTurn(),
      onError: (error) => deps.events.refreshFailed("picks of others", error),
    });
  }

  picked(cell: string, host: string): void {
    this.#untold.push({ cell, host });
    if (this.#untold.length > TOLD_MAX) this.#untold.shift();
    this.#ticker.hurry(TELL_MS);
  }

  start(): void {
    this.#ticker.start();
  }

  stop(): Promise<void> {
    return this.#ticker.stop();
  }

  /** Exchanges picks less often while there are none, so that an idle cloud costs schedulers and the soft state next to nothing. */
  async #takeTurn(): Promise<void> {
    this.#quietTurns = this.#untold.length > 0 ? 0 : this.#quietTurns + 1;
    await this.exchange();
  }

  async exchange(): Promise<void> {
    const untold = this.#untold;
    this.#untold = [];
    const [picks] = await Promise.all([
      this.#softState.recentPicks(this.#schedulerId),
      untold.length > 0 && this.#softState.recordPicks(this.#schedulerId, untold),
    ]);
    if (picks.length > 0) this.#quietTurns = 0;
    for (const changed of this.#picksOfOthers.set(picks)) this.#onChanged(changed);
  }
}
