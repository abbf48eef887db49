/** How a call for several servers was decided: enough of them were claimed, or all are given back. */
export type ReservationDecision = "placed" | "refused";

/** One call that asked for several servers, which are placed together. */
export interface Reservation {
  readonly id: string;
  readonly serverUuids: readonly string[];
  /** So many of them, or none. */
  readonly minCount: number;
}

export interface ReservationRecord extends Reservation {
  /** Null: not decided yet. */
  readonly decision: ReservationDecision | null;
  /** Why it was refused. */
  readonly fault: string | null;
}

/**
 * Calls for several servers. Their claims are transactions of several cells, so "all or none" is decided here, once, whoever
 * places them and however often: everybody carries out what was decided first. Both bodies (Postgres, in-memory) pass
 * test/contract/reservation-store. Operating failures throw the store's error.
 */
export interface ReservationStore {
  /** Before its servers are accepted. Repeatable. */
  reserve(reservation: Reservation): Promise<void>;
  reservation(id: string): Promise<ReservationRecord | null>;
  /** Decides unless it was decided before; returns what holds. Null: unknown. */
  decide(id: string, decision: ReservationDecision, fault: string | null): Promise<ReservationRecord | null>;
  /** Forgets calls that are so old and of whose servers none waits for a scheduler any more, the oldest first. Returns how many. */
  purge(olderMs: number, limit: number): Promise<number>;
}
