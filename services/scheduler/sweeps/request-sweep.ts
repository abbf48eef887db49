import type { OpenRequest } from "../../../core/stores/api/api-store.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Ticker } from "../../../runtime/ticker.ts";
import type { CellLink } from "../cells/cell-link.ts";
import { deleteInCell } from "../cells/delete-in-cell.ts";
import type { SchedulerEvents } from "../events.ts";
import type { SchedulerStore } from "../ports.ts";
import type { SchedulerSettings } from "../settings.ts";
import { type SweepIntake, sweepRoom } from "./sweep-intake.ts";

/**
 * While there is a backlog, requests whose rows have not changed are probably in the queue. Only one round in this many looks for them
 * then.
 */
const BUSY_ROUNDS_MAX = 15;
/** Maximum number of pages of one round. The next round reads the rest. */
const PAGES_MAX = 20;

/**
 * Continues requests that no scheduler works on. This scheduler places requests whose delay has ended and requests whose message was lost,
 * without the bus. Cancelled requests are cancelled in their cell too, round after round until they are gone from it.
 */
export class RequestSweep {
  readonly #store: Pick<SchedulerStore, "stale" | "markDeleted">;
  readonly #links: { get(name: string): CellLink | undefined; all(): CellLink[] };
  readonly #intake: SweepIntake;
  readonly #events: SchedulerEvents;
  readonly #settings: SchedulerSettings;
  readonly #newId: () => string;
  readonly #ticker: Ticker;
  #busyRounds = 0;

  constructor(
    deps: {
      readonly store: Pick<SchedulerStore, "stale" | "markDeleted">;
      readonly links: { get(name: string): CellLink | undefined; all(): CellLink[] };
      readonly intake: SweepIntake;
      readonly clock: Clock;
      readonly events: SchedulerEvents;
      readonly newId: () => string;
    },
    settings: SchedulerSettings,
  ) {
    this.#store = deps.store;
    this.#links = deps.links;
    this.#intake = deps.intake;
    this.#events = deps.events;
    this.#settings = settings;
    this.#newId = deps.newId;
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

  /** Runs one round. Rejects when a store could not be asked; a later round finds the requests that were left. */
  async sweep(): Promise<void> {
    const isBusy = this.#intake.room === 0;
    this.#busyRounds = isBusy ? this.#busyRounds + 1 : 0;
    const placing = this.#busyRounds % BUSY_ROUNDS_MAX === 0 ? "all" : "put-off";
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const limit = sweepRoom(this.#intake, this.#settings);
      const found = await this.#sweepPage(limit, placing);
      if (found < limit || isBusy || this.#intake.room === 0) return;
    }
  }

  /** Resolves with the number of requests that it found. */
  async #sweepPage(limit: number, placing: "all" | "put-off"): Promise<number> {
    const exceptCells = this.#links
      .all()
      .filter((link) => !link.answers)
      .map((link) => link.name);
    const stale = await this.#store.stale(this.#settings.staleMs, limit, { placing, exceptCells });
    if (stale.length === 0) return 0;
    const cancelled = stale.filter(({ state }) => state === "cancelled");
    const open = stale.filter(({ state }) => state !== "cancelled");
    this.#intake.offer(open.map(({ serverUuid }) => ({ kind: "server", id: serverUuid })));
    this.#events.swept(open.length, cancelled.length);
    await this.#cancel(cancelled);
    return stale.length;
  }

  async #cancel(records: readonly OpenRequest[]): Promise<void> {
    const nowhere = records.filter((record) => record.cell === null);
    const told = await Promise.allSettled(records.map((record) => this.#cancelInCell(record)));
    const gone = told.flatMap((result) =>
      result.status === "fulfilled" && result.value !== null ? [result.value] : [],
    );
    const deleted = [...nowhere, ...gone];
    if (deleted.length > 0) await this.#store.markDeleted(deleted);
    for (const result of told) if (result.status === "rejected") throw result.reason;
  }

  /**
   * Returns the request if its server is gone from its cell. Otherwise returns null: a conductor is going to delete the server, or a later
   * round asks again.
   */
  async #cancelInCell(record: OpenRequest): Promise<OpenRequest | null> {
    const { serverUuid, cell } = record;
    const link = cell === null ? undefined : this.#links.get(cell);
    if (!link) return null;
    const outcome = await deleteInCell(link, serverUuid, { newId: this.#newId, events: this.#events });
    return outcome === "deleted" ? record : null;
  }
}
