import type { Home } from "./home.ts";

/** A guest that a host has, whoever asked for it. */
export interface FoundGuest {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
  readonly state: "building" | "prepared" | "running" | "stopped" | "paused";
}

/** What a conductor has done with a guest that it compares with its server's row. */
export type GuestFate = "start" | "stop" | "pause" | "destroy" | "leave";

/** Servers in these states have a guest on their home host while nothing is being done to them; the sixth law rests on it. */
const WITH_A_GUEST: readonly Home["status"][] = ["ACTIVE", "SHUTOFF", "PAUSED", "VERIFY_RESIZE", "SHELVED", "ERROR"];

/** Whether a server in this state that has a home has a guest there. */
export function shouldExist(status: Home["status"] | "CLOSED"): boolean {
  return WITH_A_GUEST.some((one) => one === status);
}

/**
 * What becomes of a guest, by the row of its server (null: the cell never had it), which was read after the guest was listed. A guest
 * that is not at home, and that no move in flight speaks of, never will be at home again, since a new attempt gets a new id (law 4):
 * `destroy`. `start`: its server should run, and whoever should have started it died, or its host did. `stop`, `pause`: it runs and
 * should not. `leave`: it is as it should be, or a task in flight still wants it.
 */
export function guestFate(guest: FoundGuest, home: Home | null): GuestFate {
  if (home === null || home.status === "DELETED") return "destroy";
  const isAt = (place: { readonly host: string | null; readonly attemptId: string | null } | null): boolean =>
    place !== null && place.host === guest.host && place.attemptId === guest.attemptId;
  if (!isAt(home)) {
    const { move } = home;
    const isSource = move !== null && isAt(move.source);
    if (!isSource && (move === null || !isAt(move.dest))) return "destroy";
    if (guest.state !== "running") return "leave";
    // Home leaves a source only after the source's host said that the guest stands. That it runs may be an old word, or the guest was
    // started again since: it is told to stop once more, and does so unless it has obeyed a later order. The source of an evacuation
    // is an operator's to stop, and is stopped where its agent is heard of; it is kept until the evacuation has ended, since no other copy
    // may come of it. A destination that is not home yet must not run.
    return isSource ? "stop" : "destroy";
  }
  if (home.busy || guest.state === "building") return "leave";
  if (home.status === "ACTIVE" || (home.status === "VERIFY_RESIZE" && home.move?.runs === true))
    return guest.state === "running" ? "leave" : "start";
  if (guest.state === "running" && home.status === "PAUSED") return "pause";
  const stands = home.status === "SHUTOFF" || home.status === "SHELVED" || home.status === "VERIFY_RESIZE";
  return stands && guest.state === "running" ? "stop" : "leave";
}
