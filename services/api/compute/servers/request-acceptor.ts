import { messageOfRequest } from "../../../../adapters/nats/schedule-message.ts";
import { schedulerRequestsSubject } from "../../../../adapters/nats/streams.ts";
import type { AcceptOutcome } from "../../../../core/stores/api/api-store.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { Batcher, COMMIT_SPACING_MS } from "../../../../runtime/batcher.ts";
import type { Bus } from "../../../../runtime/bus.ts";
import type { ApiEvents } from "../../events.ts";
import { Fault } from "../../http/fault.ts";
import type { RequestsPort, ReservationsPort } from "../../ports.ts";
import type { IntakeSettings } from "../../settings.ts";

/**
 * Accepts requests: commits them to the API database, those of concurrent calls in one transaction, and notifies the schedulers. A request
 * is accepted once it is committed. The notification only saves the wait for the schedulers' sweep, so callers do not wait for it and it
 * may fail.
 */
export class RequestAcceptor {
  readonly #commits: Batcher<readonly ServerSpec[], AcceptOutcome>;
  readonly #bus: Pick<Bus, "publish">;
  readonly #reservations: ReservationsPort;
  readonly #events: ApiEvents;
  readonly #tellingMax: number;
  readonly #openMax: number | null;
  readonly #telling = new Set<Promise<void>>();

  constructor(
    deps: {
      readonly store: Pick<RequestsPort, "accept" | "acceptWithin">;
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
    this.#openMax = settings.openRequestsMax;
    this.#commits = new Batcher({
      run: async (calls) => {
        if (settings.openRequestsMax !== null) return deps.store.acceptWithin(calls, settings.openRequestsMax);
        await deps.store.accept(calls.flat());
        return calls.map(() => ({ kind: "accepted" }));
      },
      maxItems: settings.batchMax,
      concurrency: settings.batchesInFlight,
      maxQueued: settings.queuedMax,
      spacingMs: COMMIT_SPACING_MS,
    });
  }

  /**
   * Accepts all servers of one call, or none. At least `minCount` of them must be placed, or none. One message announces all of them;
   * `headers` carry its trace. Rejects when the commit failed, and with a `Fault` 403 when too many requests of the project are already
   * waiting; then nothing was accepted.
   */
  async accept(
    specs: readonly ServerSpec[],
    minCount: number,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> {
    const [first] = specs;
    if (first === undefined) return;
    // The reservation is written before the requests, so that a scheduler that finds one of the requests finds the others too.
    if (specs.length > 1) {
      const serverUuids = specs.map((spec) => spec.uuid);
      await this.#reservations.reserve({ id: first.reservationId, serverUuids, minCount });
    }
    const outcome = await this.#commits.submit(specs);
    if (outcome.kind === "over-limit") throw overLimit(specs.length, outcome.open, this.#openMax);
    this.#events.accepted(specs.length);
    this.#tell(first, headers);
  }

  /** Resolves when all notifications have been sent or have failed. */
  async settle(): Promise<void> {
    await Promise.all(this.#telling);
  }

  #tell(spec: ServerSpec, headers: Readonly<Record<string, string>>): void {
    if (this.#telling.size >= this.#tellingMax) {
      this.#events.publishFailed(spec.uuid, new Error(`${this.#tellingMax} publishes wait for an answer already`));
      return;
    }
    const told = this.#bus
      .publish(schedulerRequestsSubject, messageOfRequest(spec.uuid), { id: spec.uuid, headers })
      .catch((error: unknown) => this.#events.publishFailed(spec.uuid, error))
      .finally(() => this.#telling.delete(told));
    this.#telling.add(told);
  }
}

/** Returns the 403 that Nova answers when a project's quota is used up. */
function overLimit(asked: number, open: number, openMax: number | null): Fault {
  return new Fault(
    403,
    `Quota exceeded for open requests: Requested ${asked}, but already used ${open} of ${openMax} open requests. They wait to be placed; ask again when some of them have been, or delete some.`,
  );
}
