import type { ConductorStream } from "../../core/agent/link.ts";
import { type Destroy, FailureKind, GuestState } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { AttemptReporter } from "./attempt-reporter.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestBuilder } from "./guest-builder.ts";
import type { GuestOrders } from "./guest-orders.ts";
import type { GuestRemover } from "./guest-remover.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestName } from "./journal.ts";

export interface DestroyDeps {
  readonly store: GuestStore;
  readonly remover: GuestRemover;
  readonly builder: GuestBuilder;
  readonly orders: Pick<GuestOrders, "forget">;
  readonly reporter: AttemptReporter;
  readonly clock: Clock;
  readonly events: AgentEvents;
}

/** Removes guests permanently, as conductors order it. */
export class GuestDestroyer {
  readonly #deps: DestroyDeps;
  /** Removals in progress, by guest. Each promise resolves with null or with the reason of the failure. */
  readonly #running = new Map<string, Promise<string | null>>();

  constructor(deps: DestroyDeps) {
    this.#deps = deps;
  }

  /**
   * Removes one attempt's guest, or all guests of a server, and refuses every later build of it. The tombstone is durable first, so that a
   * delayed Build finds it, even after a crash. Orders that are repeated during a removal are answered together with the first one.
   */
  async destroy(order: Destroy, from: ConductorStream): Promise<void> {
    const { store, clock } = this.#deps;
    const { host, serverUuid, attemptId } = order;
    await store.record({ kind: "tombstone", host, serverUuid, attemptId, atMs: clock.now() });
    const guests = store
      .guestsOf(host)
      .filter((guest) => guest.serverUuid === serverUuid && (attemptId === "" || guest.attemptId === attemptId));
    const failures = await Promise.all(guests.map((guest) => this.#destroyOne(guest)));
    const failed = failures.filter((failure) => failure !== null).join("; ");
    from.send({ body: { $case: "destroyed", value: { host, serverUuid, attemptId, failed } } });
  }

  #destroyOne(guest: GuestName): Promise<string | null> {
    const key = `${guest.host} ${guest.attemptId}`;
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const removed = this.#remove(guest).finally(() => this.#running.delete(key));
    this.#running.set(key, removed);
    return removed;
  }

  /**
   * Removes a guest, and tells the callers of its build that it failed. Resolves with null when the guest is gone, and otherwise with the
   * reason.
   */
  async #remove({ host, serverUuid, attemptId }: GuestName): Promise<string | null> {
    const { store, remover, builder, orders, reporter, events } = this.#deps;
    const name = { host, serverUuid, attemptId };
    const wasBuilding = builder.cancel(attemptId);
    const failed = await remover.remove(name);
    if (failed !== null) return failed;
    await store.record({ kind: "gone", ...name });
    orders.forget(name);
    if (wasBuilding) {
      const failure = FailureKind.FAILURE_KIND_RESCHEDULE;
      const reason = "the server was destroyed while it was built";
      reporter.report({ ...name, state: GuestState.GUEST_STATE_FAILED, failure, reason, step: "", listensAt: "" });
    }
    reporter.detach(attemptId);
    events.destroyed(name);
    return null;
  }
}
