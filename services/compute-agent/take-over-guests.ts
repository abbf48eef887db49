import { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { retry } from "../../runtime/retry.ts";
import { unlessAborted } from "../../runtime/unless-aborted.ts";
import type { Driver, HostedGuest } from "./driver.ts";
import type { AgentEvents } from "./events.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestEntry } from "./guest-table.ts";
import type { GuestName, GuestState } from "./journal.ts";
import { messageOf } from "./message-of.ts";

/** How long the driver may take to list its guests for an agent that would otherwise know none of them. */
const TOLD_MS = 60_000;
/** How long an agent waits that can go by its journal. Its hosts count as down meanwhile. */
const TRUSTING_MS = 3_000;
const ASK_AGAIN = { delayMs: 1_000, delayMsMax: 15_000 };

const WHAT = "listing the driver's guests";

interface TakeOverDeps {
  readonly store: GuestStore;
  readonly driver: Pick<Driver, "hostedGuests">;
  readonly hosts: readonly string[];
  readonly clock: Clock;
  readonly events: Pick<AgentEvents, "guestsTakenOver" | "waitsForDriver" | "goesByJournal">;
  /** Raised when the agent is closed. */
  readonly signal: AbortSignal;
}

/**
 * Records the guests that exist on the agent's hosts and that its journal does not know, because it was lost, or is older than they are. Called at the start, before the agent connects to any
 * conductor: orders find these guests then, and each list of guests is complete. A guest that was recorded before a crash in the middle is known afterwards.
 *
 * A driver that cannot tell is asked again until it can, if the journal may have been lost: it names no comparison for a host. Otherwise the agent goes by its journal. Rejects when the signal is raised.
 *
 * Resolves with the guests that the journal knows as prepared and that the driver was told to start: the agent's last process ended in the middle of their first start, or the journal is outdated.
 */
export async function takeOverGuests(deps: TakeOverDeps): Promise<readonly GuestName[]> {
  const { store, hosts, clock, events, signal } = deps;
  const mayBeLost = hosts.some((host) => store.comparedWith(host).incarnation === "");
  const list = async () => {
    try {
      return await hostedGuests(deps, mayBeLost ? TOLD_MS : TRUSTING_MS);
    } catch (error) {
      if (mayBeLost && !signal.aborted) events.waitsForDriver(messageOf(error));
      throw error;
    }
  };
  const triesMax = mayBeLost ? Number.POSITIVE_INFINITY : 1;
  const told = await retry(list, { ...ASK_AGAIN, triesMax, clock, signal }).catch(messageOf);
  signal.throwIfAborted();
  if (typeof told !== "string") return recordAll(deps, told);
  events.goesByJournal(told);
  return [];
}

/** Rejects when the signal is raised, too. The driver's answer is then ignored. */
function hostedGuests(
  { store, driver, hosts, clock, signal }: TakeOverDeps,
  timeoutMs: number,
): Promise<readonly HostedGuest[]> {
  const known = store.all().map(({ host, serverUuid, attemptId }) => ({ host, serverUuid, attemptId }));
  const told = driver.hostedGuests(new Set(hosts), known);
  return unlessAborted(withDeadline(told, timeoutMs, WHAT, clock), signal);
}

async function recordAll(
  { store, clock, events }: TakeOverDeps,
  found: readonly HostedGuest[],
): Promise<readonly GuestName[]> {
  const taken: HostedGuest[] = [];
  const begun = found.filter(
    ({ host, attemptId, stage }) => stage === "has-run" && store.guest(host, attemptId)?.state === "prepared",
  );
  const record = async (guest: HostedGuest) => {
    const { host, serverUuid, attemptId } = guest;
    const known = store.guest(host, attemptId);
    const after = changesOf(guest, known);
    if (after === null) return;
    if (known === undefined) taken.push(guest);
    const { revision, orderId, listensAt, cause } = (known?.state === "failed" ? undefined : known) ?? {};
    const before = { revision, ...(orderId && { orderId }), ...(listensAt && { listensAt }), ...(cause && { cause }) };
    const name = { host, serverUuid, attemptId, ...(known === undefined && { isFound: true }) };
    await store.record({ kind: "guest", ...name, atMs: clock.now(), ...before, ...after });
  };
  await Promise.all(found.map(record));
  events.guestsTakenOver(taken);
  return begun;
}

/**
 * What the record of a guest must say that it does not say yet, or null. A guest that has run counts as running until the driver is asked for its state, so that one that has shut itself
 * down since is found to have done so. One that has run is whole, also if an outdated journal knows it as one that is being built. One that the journal knows as prepared stays so until that look, whose caller
 * is told of it: a death before the look must not make it one that has stopped by itself. A guest of a failed attempt that has never run is removed, as one that is half built.
 */
function changesOf(
  { stage, listensAt, volumeIds }: HostedGuest,
  known: GuestEntry | undefined,
): { readonly state: GuestState; readonly listensAt?: string; readonly volumes?: readonly ServerVolume[] } | null {
  const hasRun = stage === "has-run";
  if (known === undefined || known.state === "failed") {
    const isPrepared = stage === "prepared" && known === undefined;
    const listening = isPrepared && listensAt !== undefined ? { listensAt } : {};
    return { state: hasRun ? "running" : isPrepared ? "prepared" : "building", ...listening, ...volumesOf(volumeIds) };
  }
  const isOutdated = hasRun && known.state === "building";
  const { volumes = [] } = known;
  const isSame = volumes.length === volumeIds.length && volumes.every(({ volumeId }) => volumeIds.includes(volumeId));
  if (!isOutdated && (isSame || known.state === "building")) return null;
  return { state: isOutdated ? "running" : known.state, ...volumesOf(volumeIds, volumes) };
}

/** The driver knows the volumes' ids. Nothing else of them that the journal does not know matters to the agent. */
function volumesOf(volumeIds: readonly string[], known: readonly ServerVolume[] = []) {
  const volumeOf = (volumeId: string) =>
    known.find((one) => one.volumeId === volumeId) ?? ServerVolume.fromPartial({ volumeId });
  return volumeIds.length === 0 && known.length === 0 ? {} : { volumes: volumeIds.map(volumeOf) };
}
