import { runsNow } from "../agent/runs-now.ts";
import type { StopCause } from "../agent/stop-cause.ts";
import type { Home } from "./home.ts";

/** A guest that was found on a host, whatever created it. */
export interface FoundGuest {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
  readonly state: "building" | "prepared" | "running" | "stopped" | "paused" | "suspended" | "rescued";
  /** Why a stopped guest stopped, if no order stopped it. */
  readonly cause?: StopCause | null;
}

/** The action of a conductor on a guest that it compares with its server's row. */
export type GuestFate = "start" | "stop" | "pause" | "suspend" | "unrescue" | "destroy" | "stop-server" | "leave";

/** Servers in these states have a guest on their home host while nothing is being done to them; the sixth law rests on it. */
const WITH_A_GUEST: readonly Home["status"][] = [
  "ACTIVE",
  "SHUTOFF",
  "PAUSED",
  "SUSPENDED",
  "RESCUE",
  "VERIFY_RESIZE",
  "SHELVED",
  "SOFT_DELETED",
  "ERROR",
];

/** Whether a server in this state that has a home has a guest there. */
export function shouldExist(status: Home["status"] | "CLOSED"): boolean {
  return WITH_A_GUEST.some((one) => one === status);
}

/** Whether a server in this state becomes SHUTOFF when its guest stops without an order, for this cause. */
export function isStoppedWithGuest(status: Home["status"], cause: StopCause): boolean {
  return status === "PAUSED" || (status === "ACTIVE" && cause !== "halted-with-host");
}

/**
 * Decides about a guest by its server's row (null when the cell never had the server), which was read after the guest was listed. A guest
 * that is not at home and belongs to no open move will never be at home again, since a new attempt gets a new id (law 4): `destroy`.
 * `start`: the server should run, but the process that should have started the guest died, or the host did. `unrescue`: it should run, and its
 * guest runs in rescue mode. `stop`, `pause`, `suspend`: the guest runs and should not. `stop-server`: the guest stopped without an order, and its
 * server is to be stopped, too. `leave`: the guest is in the right state, or an open task still needs it. A rescued server whose guest does not
 * run is left alone, as by Nova: its owner ends the rescue, which starts the guest.
 */
export function guestFate(guest: FoundGuest, home: Home | null): GuestFate {
  if (home === null || home.status === "DELETED") return "destroy";
  const isAt = (place: { readonly host: string | null; readonly attemptId: string | null } | null): boolean =>
    place !== null && place.host === guest.host && place.attemptId === guest.attemptId;
  if (!isAt(home)) {
    const { move } = home;
    const isSource = move !== null && isAt(move.source);
    if (!isSource && (move === null || !isAt(move.dest))) return "destroy";
    if (!runsNow(guest.state)) return "leave";
    // The home leaves a source only after the source's host has reported that the guest is stopped. A report that it runs may be outdated,
    // or the guest was started again later: it gets another stop order, which it obeys unless it has obeyed a later one. An operator must
    // stop the source of an evacuation. If the agent of that source is heard of, the guest is stopped, and it is kept until the evacuation
    // has ended, since the evacuation may fail to produce another copy. A destination that is not home yet must not run. If it does while
    // the move is open, a restored database may have forgotten that it became home: the move finds it, and may make it home at any moment.
    if (isSource) return "stop";
    return home.busy ? "leave" : "destroy";
  }
  if (home.busy || guest.state === "building") return "leave";
  // Source: `_sync_instance_power_state` of Nova's compute manager, which leaves a resized server alone.
  const cause = guest.cause ?? null;
  if (cause !== null && isStoppedWithGuest(home.status, cause)) return "stop-server";
  if (cause !== null && cause !== "halted-with-host") return "leave";
  if (home.status === "ACTIVE" || (home.status === "VERIFY_RESIZE" && home.move?.runs === true))
    return guest.state === "running" ? "leave" : guest.state === "rescued" ? "unrescue" : "start";
  if (guest.state === "running" && home.status === "PAUSED") return "pause";
  if (guest.state === "running" && home.status === "SUSPENDED") return "suspend";
  return STANDING.includes(home.status) && runsNow(guest.state) ? "stop" : "leave";
}

/** Servers in these states must not run. The memory of a guest in rescue mode is not the server's, so such a guest is stopped, too. */
const STANDING: readonly Home["status"][] = [
  "SHUTOFF",
  "SHELVED",
  "SOFT_DELETED",
  "VERIFY_RESIZE",
  "PAUSED",
  "SUSPENDED",
];
