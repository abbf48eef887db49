/** How a multi-create call was decided: enough of its servers were claimed (`placed`), or all claims are released (`refused`). */
export type ReservationDecision = "placed" | "refused";

/** One multi-create call, whose servers are placed together. */
export interface Reservation {
  readonly id: string;
  readonly serverUuids: readonly string[];
  /** At least this many servers must be placed, or none. */
  readonly minCount: number;
}

export interface ReservationRecord extends Reservation {
  /** Null while nothing is decided. */
  readonly decision: ReservationDecision | null;
  /** Why the reservation was refused. */
  readonly fault: string | null;
}

/**
 * Multi-create calls. Their claims are transactions of several cells, so "all or none" is decided here, once, however many schedulers place
 * them and however often. Every scheduler carries out the first decision. Both implementations (Postgres, in-memory) pass
 * test/contract/reservation-store. Operating failures throw the store's error.
 */
export interface ReservationStore {
  /** Must be called before the reservation's servers are accepted. Repeatable. */
  reserve(reservation: Reservation): Promise<void>;
  reservation(id: string): Promise<ReservationRecord | null>;
  /** Decides the reservation unless it is already decided, and returns the decision that holds. Null when the reservation is unknown. */
  decide(id: string, decision: ReservationDecision, fault: string | null): Promise<ReservationRecord | null>;
  /**
   * Deletes reservations that are older than `olderMs` and have no server that still waits for a scheduler, oldest first. Returns how many.
   */
  purge(olderMs: number, limit: number): Promise<number>;
}
