import type { Clock } from "../../../runtime/clock.ts";
import { Ticker } from "../../../runtime/ticker.ts";
import type { CellLink } from "../cells/cell-link.ts";
import type { SchedulerEvents } from "../events.ts";
import type { SchedulerStore } from "../ports.ts";
import type { SchedulerSettings } from "../settings.ts";

/** Maximum number of pages of one cell in one round. The next round reads the rest. */
const PAGES_MAX = 100;

/**
 * Checks whether requests that were assigned to a cell have arrived there. A scheduler that dies between the assignment and the dispatch
 * relies on the second delivery of the message. If the queue has lost the message as well, only this sweep notices. A missing request is
 * handed to the next `RequestSweep`. The placer knows that the request may have arrived in its cell by then.
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

  /** Runs one round over all cells. Rejects when one of them could not be asked; the others were swept all the same. */
  async sweep(): Promise<void> {
    // Requests that were handed on for an unreachable cell would only be put off again.
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
