import type { MoveStore } from "../../../core/stores/api/move-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Ticker } from "../../../runtime/ticker.ts";
import type { CellLink } from "../cells/cell-link.ts";
import type { SchedulerEvents } from "../events.ts";
import type { SchedulerSettings } from "../settings.ts";
import { type SweepIntake, sweepRoom } from "./sweep-intake.ts";

/** Continues accepted moves that no scheduler works on: moves whose delay has ended, and moves whose message was lost. Needs no bus. */
export class MoveSweep {
  readonly #store: Pick<MoveStore, "staleMoves">;
  readonly #links: { all(): CellLink[] };
  readonly #intake: SweepIntake;
  readonly #events: SchedulerEvents;
  readonly #settings: SchedulerSettings;
  readonly #ticker: Ticker;

  constructor(
    deps: {
      readonly store: Pick<MoveStore, "staleMoves">;
      readonly links: { all(): CellLink[] };
      readonly intake: SweepIntake;
      readonly clock: Clock;
      readonly events: SchedulerEvents;
    },
    settings: SchedulerSettings,
  ) {
    this.#store = deps.store;
    this.#links = deps.links;
    this.#intake = deps.intake;
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

  /** Runs one round. Rejects when the store could not be asked; a later round finds the moves that were left. */
  async sweep(): Promise<void> {
    const { staleMs, giveUpMs } = this.#settings;
    const away = this.#links.all().filter((link) => !link.answers);
    const query = { exceptCells: away.map(({ name }) => name), unlessOlderThanMs: giveUpMs };
    const stale = await this.#store.staleMoves(staleMs, sweepRoom(this.#intake, this.#settings), query);
    if (stale.length === 0) return;
    this.#intake.offer(stale.map((id) => ({ kind: "move", id })));
    this.#events.swept(stale.length, 0);
  }
}
