import type {
  Reservation,
  ReservationDecision,
  ReservationRecord,
  ReservationStore,
} from "../../core/cell/reservation-store.ts";

/** The in-process twin of the reservations' table: every call is one step, and lasts as long as this object. */
export class MemoryReservationStore implements ReservationStore {
  readonly #reservations = new Map<string, ReservationRecord>();

  async reserve(reservation: Reservation): Promise<void> {
    if (this.#reservations.has(reservation.id)) return;
    this.#reservations.set(reservation.id, { ...reservation, decision: null, fault: null });
  }

  async reservation(id: string): Promise<ReservationRecord | null> {
    return this.#reservations.get(id) ?? null;
  }

  async decide(id: string, decision: ReservationDecision, fault: string | null): Promise<ReservationRecord | null> {
    const found = this.#reservations.get(id);
    if (found === undefined) return null;
    const decided = found.decision === null ? { ...found, decision, fault } : found;
    this.#reservations.set(id, decided);
    return decided;
  }
}
