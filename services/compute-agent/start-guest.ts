import type { ConductorStream } from "../../core/agent/link.ts";
import { FailureKind, GuestState, type Start } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Driver } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestStore } from "./guest-store.ts";
import { messageOf } from "./message-of.ts";
import type { GuestOrders } from "./order-guests.ts";
import { type AttemptReporter, reportOf } from "./report-attempts.ts";

export interface StartDeps {
  readonly store: GuestStore;
  readonly driver: Driver;
  readonly reporter: AttemptReporter;
  readonly clock: Clock;
  readonly orders: Pick<GuestOrders, "revisionOf">;
  readonly events: AgentEvents;
}

/**
 * Lets a guest run that was prepared, or stopped with its host. Refuses a guest that it does not have or that was destroyed; one that runs already is no
 * error. A start that fails leaves the guest prepared: conductors ask again when they compare guests with the database.
 */
export async function startGuest(deps: StartDeps, order: Start, from: ConductorStream): Promise<void> {
  const { store, driver, reporter, orders, clock, events } = deps;
  const name = { host: order.host, serverUuid: order.serverUuid, attemptId: order.attemptId };
  const entry = store.guest(order.host, order.attemptId);
  const refuse = (reason: string) => {
    const failure = FailureKind.FAILURE_KIND_RESCHEDULE;
    const value = { ...name, state: GuestState.GUEST_STATE_FAILED, failure, reason, step: "" };
    from.send({ body: { $case: "attempt", value } });
  };
  if (store.isBuried(name)) return refuse("the server was destroyed here before");
  if (order.revision < orders.revisionOf(name)) return refuse("a later order was given");
  if (entry === undefined || entry.state === "building" || entry.state === "failed")
    return refuse("there is no such guest");
  reporter.detach(order.attemptId);
  if (entry.state !== "running") {
    try {
      await (entry.state === "prepared" ? driver.start(name) : driver.power(name, "start"));
    } catch (error) {
      events.startFailed(name, messageOf(error));
      return refuse(`the guest does not start: ${messageOf(error)}`);
    }
    // Destroyed while it started: what the driver made of both is not to be relied on.
    if (store.isBuried(name))
      return void driver.destroy(name).catch((error) => events.leftover(name, messageOf(error)));
    await store.record({ kind: "guest", ...name, state: "running", atMs: clock.now(), revision: order.revision });
  }
  from.send({ body: { $case: "attempt", value: reportOf({ ...entry, state: "running" }) } });
}
