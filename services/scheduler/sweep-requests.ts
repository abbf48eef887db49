import { schedulerRequestsSubject } from "../../adapters/nats/streams.ts";
import type { RequestRecord } from "../../core/cell/api-store.ts";
import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Ticker } from "../../runtime/ticker.ts";
import type { CellLink } from "./cell-link.ts";
import { deleteInCell } from "./delete-in-cell.ts";
import type { SchedulerEvents } from "./events.ts";
import type { SchedulerBus, SchedulerStore } from "./ports.ts";
import type { SchedulerSettings } from "./settings.ts";

/** A backlog puts off so many rounds in a row; it may last, and what was cancelled or never published is in no queue. */
const BUSY_ROUNDS_MAX = 15;

/**
 * Carries on the requests that nobody does: accepted ones whose message was never published go (again) to the work queue,
 * where they are safe until somebody ends them; cancelled ones are cancelled in their cell too, until they are gone there.
 */
export class RequestSweep {
  readonly #store: Pick<SchedulerStore, "stale" | "markDeleted">;
  readonly #links: { get(name: string): CellLink | undefined };
  readonly #bus: SchedulerBus;
  readonly #events: SchedulerEvents;
  readonly #settings: SchedulerSettings;
  readonly #isBusy: () => boolean;
  readonly #newId: () => string;
  readonly #ticker: Ticker;
  #busyRounds = 0;

  constructor(
    deps: {
      readonly store: Pick<SchedulerStore, "stale" | "markDeleted">;
      readonly links: { get(name: string): CellLink | undefined };
      readonly bus: SchedulerBus;
      readonly clock: Clock;
      readonly events: SchedulerEvents;
      /** There is a backlog: requests that nobody touched are probably in the queue. */
      readonly isBusy: () => boolean;
      readonly newId: () => string;
    },
    settings: SchedulerSettings,
  ) {
    this.#store = deps.store;
    this.#links = deps.links;
    this.#bus = deps.bus;
    this.#events = deps.events;
    this.#settings = settings;
    this.#isBusy = deps.isBusy;
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

  /** One round. Rejects when a store or the bus could not be asked; what was left over is found by a later round. */
  async sweep(): Promise<void> {
    this.#busyRounds = this.#isBusy() ? this.#busyRounds + 1 : 0;
    if (this.#busyRounds % BUSY_ROUNDS_MAX !== 0) return;
    const stale = await this.#store.stale(this.#settings.staleMs, this.#settings.sweepLimit);
    if (stale.length === 0) return;
    const accepted = stale.filter((record) => record.state === "accepted");
    const cancelled = stale.filter((record) => record.state === "cancelled");
    const done = await Promise.allSettled([...accepted.map((record) => this.#queue(record)), this.#cancel(cancelled)]);
    this.#events.swept(accepted.length, cancelled.length);
    for (const result of done) if (result.status === "rejected") throw result.reason;
  }

  /** No message id: the stream would drop it as a repetition of one that was lost on its way out. */
  #queue({ spec }: RequestRecord): Promise<void> {
    return this.#bus.publish(
      schedulerRequestsSubject,
      ScheduleRequest.encode({ server: spec, move: undefined }).finish(),
    );
  }

  async #cancel(records: readonly RequestRecord[]): Promise<void> {
    const nowhere = records.filter((record) => record.cell === null).map((record) => record.serverUuid);
    const told = await Promise.allSettled(records.map((record) => this.#cancelInCell(record)));
    const gone = told.flatMap((result) =>
      result.status === "fulfilled" && result.value !== null ? [result.value] : [],
    );
    const deleted = [...nowhere, ...gone];
    if (deleted.length > 0) await this.#store.markDeleted(deleted);
    for (const result of told) if (result.status === "rejected") throw result.reason;
  }

  /** Returns the server's uuid if it is gone there; else a conductor will delete it, or a later round asks again. */
  async #cancelInCell({ serverUuid, cell }: RequestRecord): Promise<string | null> {
    const link = cell === null ? undefined : this.#links.get(cell);
    if (!link) return null;
    const outcome = await deleteInCell(link, serverUuid, { newId: this.#newId, events: this.#events });
    return outcome === "deleted" ? serverUuid : null;
  }
}
