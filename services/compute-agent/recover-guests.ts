import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { DESTROY_TIMEOUT_MS, type Driver, type KeptState } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestObserver } from "./guest-observer.ts";
import type { GuestRemover } from "./guest-remover.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import type { GuestName } from "./journal.ts";
import { messageOf } from "./message-of.ts";
import { takeOverGuests } from "./take-over-guests.ts";

type KeptGuest = GuestEntry & { readonly state: KeptState };

/** The failure report of a build that was interrupted by the agent's end. */
export const INTERRUPTED = {
  failure: "reschedule",
  reason: "the agent was restarted while it built the server",
} as const;

/** How long the agent waits at its start for removals, most of which take milliseconds. It has no heartbeats yet, and its hosts count as down. */
const REMOVALS_MS = 2_000;

/**
 * Recovers after a restart. Guests that the journal does not know are taken over first (`takeOverGuests`). The guests that outlived the agent's last process are passed to the driver and recorded in the state that the
 * driver finds. Then guests that were half built or already destroyed by order are removed. Returns the guests that the driver has failed to
 * remove, or has not removed yet, because the agent must start for its other guests even so. A removal that takes longer goes on.
 */
export async function recoverGuests(deps: {
  readonly store: GuestStore;
  readonly driver: Driver;
  readonly hosts: readonly string[];
  readonly remover: GuestRemover;
  readonly observer: GuestObserver;
  readonly clock: Clock;
  readonly events: AgentEvents;
  /** Raised when the agent is closed. */
  readonly signal: AbortSignal;
}): Promise<readonly GuestName[]> {
  const { store, driver, remover, observer, clock, events } = deps;
  const begun = await takeOverGuests(deps);
  const guests = store.all().filter((entry) => entry.state !== "failed");
  const lost = new Set(guests.filter((entry) => entry.state === "building" || store.isBuried(entry)));
  const kept = guests.filter((entry) => !lost.has(entry)) as KeptGuest[];
  const left: GuestName[] = [];
  const removed: GuestName[] = [];
  const remove = async ({ host, serverUuid, attemptId }: GuestEntry) => {
    const name = { host, serverUuid, attemptId };
    const removal = remover.remove(name);
    const failed = await withDeadline(removal, REMOVALS_MS, "the driver's destroy", clock).catch(messageOf);
    if (failed !== null) {
      left.push(name);
      return;
    }
    removed.push(name);
    if (store.isBuried(name)) await store.record({ kind: "gone", ...name });
    else await store.record({ kind: "failed", ...name, ...INTERRUPTED, atMs: clock.now() });
  };
  const adopted = withDeadline(driver.adopt(kept, [...lost]), DESTROY_TIMEOUT_MS, "the driver's adopt", clock).then(
    () => null,
  );
  const failed = await adopted.catch(messageOf);
  if (failed === null) await observer.correctAtStart(kept, begun);
  else events.adoptFailed(failed);
  try {
    await Promise.all([...lost].map(remove));
  } finally {
    // A journal that cannot be written ends the agent, and these guests are gone all the same.
    events.interrupted(removed);
  }
  return left;
}
