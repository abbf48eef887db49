import { schedulerRequestsSubject } from "../../../adapters/nats/streams.ts";
import { ScheduleRequest } from "../../../proto/gen/berth/scheduler.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../runtime/batcher.ts";
import type { Bus } from "../../../runtime/bus.ts";
import type { ApiEvents } from "../events.ts";
import type { RequestsPort, ReservationsPort } from "../ports.ts";
import type { IntakeSettings } from "../settings.ts";

/**
 * Accepts requests: commits them to the API database, those of concurrent calls in one transaction, and tells the
 * schedulers. A request is accepted once it is committed; telling only brings it to a scheduler sooner than the schedulers'
 * own sweep of the table would, so nobody waits for it, and it may fail.
 */
export class RequestAcceptor {
  readonly #commits: Batcher<readonly ServerSpec[], void>;
  readonly #bus: Pick<Bus, "publish">;
  readonly #reservations: ReservationsPort;
  readonly #events: ApiEvents;
  readonly #tellingMax: number;
  readonly #telling = new Set<Promise<void>>();

  constructor(
    deps: {
      readonly store: Pick<RequestsPort, "accept">;
      readonly reservations: ReservationsPort;
      readonly bus: Pick<Bus, "publish">;
      readonly events: ApiEvents;
    },
    settings: IntakeSettings,
  ) {
    this.#reservations = deps.reservations;
    this.#bus = deps.bus;
    this.#events = deps.events;
    this.#tellingMax = settings.publishesInFlightMax;
    this.#commits = new Batcher({
      run: async (calls) => {
        await deps.store.accept(calls.flat());
        return calls.map((): void => undefined);
      },
      maxItems: settings.batchMax,
      concurrency: settings.batchesInFlight,
      maxQueued: settings.queuedMax,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  /**
   * The servers of one call, all or none; at least `minCount` of them are to be placed, or none. `headers` carry the trace. Rejects when
   * the commit failed: then none was accepted. One message tells of all.
   */
  async accept(
    specs: readonly ServerSpec[],
    minCount: number,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> {
    const [first] = specs;
    if (first === undefined) return;
    // Before them, so that whoever finds one of them finds the others.
    if (specs.length > 1) {
      const serverUuids = specs.map((spec) => spec.uuid);
      await this.#reservations.reserve({ id: first.reservationId, serverUuids, minCount });
    }
    await this.#commits.submit(specs);
    this.#events.accepted(specs.length);
    this.#tell(first, headers);
  }

  /** Resolves when nothing is being told any more. */
  async settle(): Promise<void> {
    await Promise.all(this.#telling);
  }

  #tell(spec: ServerSpec, headers: Readonly<Record<string, string>>): void {
    if (this.#telling.size >= this.#tellingMax) {
      this.#events.publishFailed(spec.uuid, new Error(`${this.#tellingMax} publishes wait for an answer already`));
      return;
    }
    const told = this.#bus
      .publish(schedulerRequestsSubject, ScheduleRequest.encode({ server: spec, move: undefined }).finish(), {
        id: spec.uuid,
        headers,
      })
      .catch((error: unknown) => this.#events.publishFailed(spec.uuid, error))
      .finally(() => this.#telling.delete(told));
    this.#telling.add(told);
  }
}
