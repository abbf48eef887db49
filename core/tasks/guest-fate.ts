import type { Home } from "../cell/cell-store.ts";

/** A guest that a host has, whoever asked for it. */
export interface FoundGuest {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
  readonly state: "building" | "prepared" | "running";
}

/**
 * What becomes of a guest, by the row of its server (null: the cell never had it). A row only ever goes forward from
 * attempt to attempt, so a guest that is not at home now never will be again (law 4): `destroy`. `start`: its home was
 * committed, and whoever should have started it died. `leave`: it runs, or a task in flight still wants it.
 */
export function guestFate(guest: FoundGuest, home: Home | null): "start" | "destroy" | "leave" {
  if (home === null || home.status === "DELETED") return "destroy";
  if (home.host !== guest.host || home.attemptId !== guest.attemptId) return "destroy";
  return home.status === "ACTIVE" && guest.state === "prepared" ? "start" : "leave";
}
