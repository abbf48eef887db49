import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { DESTROY_TIMEOUT_MS, type Driver, type KeptState } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import type { GuestName } from "./journal.ts";
import { messageOf } from "./message-of.ts";
import type { GuestObserver } from "./observe-guests.ts";
import type { GuestRemover } from "./remove-guests.ts";

type KeptGuest = GuestEntry & { readonly state: KeptState };

/** The word on a build that the agent's end cut short. */
export const INTERRUPTED = {
  failure: "reschedule",
  reason: "the agent was restarted while it built the server",
} as const;

/** A driver has so long to end a removal after it was told to give it up. */
const GIVE_UP_MS = 5_000;

/**
 * After a restart: the guests that outlived the agent's last process are handed to the driver and recorded as the driver finds them, then
 * what was half built or already condemned is removed. Returns what the driver failed to remove: an agent must come up even so, for its
 * other guests.
 */
export async function recoverGuests(deps: {
  readonly store: GuestStore;
  readonly driver: Driver;
  readonly remover: GuestRemover;
  readonly observer: GuestObserver;
  readonly clock: Clock;
  readonly events: AgentEvents;
}): Promise<readonly GuestName[]> {
  const { store, driver, remover, observer, clock, events } = deps;
  const guests = store.all().filter((entry) => entry.state !== "failed");
  const lost = new Set(guests.filter((entry) => entry.state === "building" || store.isBuried(entry)));
  const kept = guests.filter((entry) => !lost.has(entry)) as KeptGuest[];
  const left: GuestName[] = [];
  const remove = async ({ host, serverUuid, attemptId }: GuestEntry) => {
    const name = { host, serverUuid, attemptId };
    const removal = remover.remove(name);
    const deadlineMs = DESTROY_TIMEOUT_MS + GIVE_UP_MS;
    const failed = await withDeadline(removal, deadlineMs, "the driver's destroy", clock).catch(messageOf);
    if (failed !== null) {
      left.push(name);
      return;
    }
    events.interrupted(name);
    if (store.isBuried(name)) await store.record({ kind: "gone", ...name });
    else await store.record({ kind: "failed", ...name, ...INTERRUPTED, atMs: clock.now() });
  };
  const adopted = withDeadline(driver.adopt(kept), DESTROY_TIMEOUT_MS, "the driver's adopt", clock).then(() => null);
  const failed = await adopted.catch(messageOf);
  if (failed === null) await observer.correct(kept);
  else events.adoptFailed(failed);
  await Promise.all([...lost].map(remove));
  return left;
}
