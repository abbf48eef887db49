import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { CellLink } from "./cell-link.ts";
import type { SchedulerEvents } from "./events.ts";
import type { SchedulerStore } from "./ports.ts";
import type { SchedulerSettings } from "./settings.ts";

/** Pages of one cell in one round: with more on their way than that, the rest is for the next round. */
const PAGES_MAX = 100;

/**
 * Looks whether what was assigned to a cell has arrived there. A scheduler that dies between the two leaves that to the second
 * delivery of the message; should the queue have lost it too, nobody but this sweep ever would. What is missing is handed to the next
 * `RequestSweep`: the placer knows that it may be in its cell after all by then.
 */
export class ArrivalSweep {
  readonly #store: Pick<SchedulerStore, "unarrived" | "markArrived" | "takeLost">;
  readonly #links: { all(): CellLink[] };
  readonly #events: SchedulerEvents;
  readonly #settings: SchedulerSettings;
  readonly #ticker: Ticker;

  constructor(
    deps: {
      readonly store: Pick<SchedulerStore, "unarrived" | "markArrived" | "takeLost">;
      readonly links: { all(): CellLink[] };
      readonly clock: Clock;
      readonly events: SchedulerEvents;
    },
    settings: SchedulerSettings,
  ) {
    this.#store = deps.store;
    this.#links = deps.links;
    this.#events = deps.events;
    this.#settings = settings;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: settings.arrivalSweepMs,
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

  /** One round over all cells. Rejects when one could not be asked; the others were. */
  async sweep(): Promise<void> {
    // A cell that cannot be reached would only put off what is sent to it again.
    const links = this.#links.all().filter((link) => link.answers);
    const done = await Promise.allSettled(links.map((link) => this.#sweepCell(link)));
    for (const result of done) if (result.status === "rejected") throw result.reason;
  }

  async #sweepCell(link: CellLink): Promise<void> {
    const { arrivalMs, sweepLimit } = this.#settings;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const records = await this.#store.unarrived(link.name, arrivalMs, sweepLimit);
      if (records.length === 0) return;
      const uuids = records.map((record) => record.serverUuid);
      const known = await link.known(uuids);
      await this.#store.markArrived(
        link.name,
        uuids.filter((uuid) => known.has(uuid)),
      );
      const missing = records.filter((record) => !known.has(record.serverUuid));
      const lost = await this.#store.takeLost(
        link.name,
        missing.map((record) => record.serverUuid),
        arrivalMs,
      );
      if (lost.length > 0) this.#events.foundLost(link.name, lost.length);
      if (records.length < sweepLimit) return;
    }
  }
}
