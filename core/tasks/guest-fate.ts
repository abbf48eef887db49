import type { Home } from "../cell/cell-store.ts";

/** A guest that a host has, whoever asked for it. */
export interface FoundGuest {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
  readonly state: "building" | "prepared" | "running" | "stopped" | "paused";
}

/**
 * What becomes of a guest, by the row of its server (null: the cell never had it). A guest that is not at home, and that no move
 * in flight speaks of, never will be at home again, since a new attempt gets a new id (law 4): `destroy`. `start`: its server should
 * run, and whoever should have started it died, or its host did. `leave`: it is as it should be, or a task in flight still wants it.
 */
export function guestFate(guest: FoundGuest, home: Home | null): "start" | "destroy" | "leave" {
  if (home === null || home.status === "DELETED") return "destroy";
  const isAt = (place: { readonly host: string | null; readonly attemptId: string | null } | null): boolean =>
    place !== null && place.host === guest.host && place.attemptId === guest.attemptId;
  if (!isAt(home)) {
    const { move } = home;
    const isKept = move !== null && (isAt(move.source) || isAt(move.dest));
    // Home leaves a source only after that said that its guest stands: whoever says that it runs said so before, and it is wanted for
    // the way back. Only the source of an evacuation was not asked.
    const isOldWord = move !== null && isAt(move.source) && move.kind !== "evacuate";
    return isKept && (guest.state !== "running" || isOldWord) ? "leave" : "destroy";
  }
  if (home.busy) return "leave";
  const shouldRun = home.status === "ACTIVE" || (home.status === "VERIFY_RESIZE" && home.move?.runs === true);
  return shouldRun && guest.state !== "running" && guest.state !== "building" ? "start" : "leave";
}
