import type { ConductorStream } from "../../core/agent/link.ts";
import { type Destroy, FailureKind, GuestState } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { GuestBuilder } from "./build-guests.ts";
import { DESTROY_TIMEOUT_MS, type Driver } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestName } from "./journal.ts";
import { messageOf } from "./message-of.ts";
import type { AttemptReporter } from "./report-attempts.ts";

export interface DestroyDeps {
  readonly store: GuestStore;
  readonly driver: Driver;
  readonly builder: GuestBuilder;
  readonly reporter: AttemptReporter;
  readonly clock: Clock;
  readonly events: AgentEvents;
}

/**
 * Removes one attempt's guest, or all of a server, and refuses every later build of it: the tombstone is durable first, so
 * that a Build that was overtaken finds it, also after a crash. Whoever waited for the build hears that it failed.
 */
export async function destroyGuests(deps: DestroyDeps, order: Destroy, from: ConductorStream): Promise<void> {
  const { store, clock } = deps;
  const { host, serverUuid, attemptId } = order;
  await store.record({ kind: "tombstone", host, serverUuid, attemptId, atMs: clock.now() });
  const guests = store
    .guestsOf(host)
    .filter((guest) => guest.serverUuid === serverUuid && (attemptId === "" || guest.attemptId === attemptId));
  const failures = await Promise.all(guests.map((guest) => destroyOne(deps, guest)));
  const failed = failures.filter((failure) => failure !== null).join("; ");
  from.send({ body: { $case: "destroyed", value: { host, serverUuid, attemptId, failed } } });
}

/** Null: gone. Else why not. */
async function destroyOne(deps: DestroyDeps, guest: GuestName): Promise<string | null> {
  const { store, driver, builder, reporter, clock, events } = deps;
  const { host, serverUuid, attemptId } = guest;
  const wasBuilding = builder.cancel(attemptId);
  try {
    await withDeadline(
      driver.destroy({ host, serverUuid, attemptId }),
      DESTROY_TIMEOUT_MS,
      "the driver's destroy",
      clock,
    );
  } catch (error) {
    events.leftover(guest, messageOf(error));
    return messageOf(error);
  }
  await store.record({ kind: "gone", host, serverUuid, attemptId });
  if (wasBuilding) {
    const failure = FailureKind.FAILURE_KIND_RESCHEDULE;
    const reason = "the server was destroyed while it was built";
    reporter.report({ host, serverUuid, attemptId, state: GuestState.GUEST_STATE_FAILED, failure, reason, step: "" });
  }
  reporter.detach(attemptId);
  events.destroyed(guest);
  return null;
}
