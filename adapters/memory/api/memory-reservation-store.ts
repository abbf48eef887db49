import type { ApiStore } from "../../../core/stores/api/api-store.ts";
import type {
  Reservation,
  ReservationDecision,
  ReservationRecord,
  ReservationStore,
} from "../../../core/stores/api/reservation-store.ts";
import type { Clock } from "../../../runtime/clock.ts";

/** The in-process twin of the table of reservations. Every call is one step. The rows live as long as this object. */
export class MemoryReservationStore implements ReservationStore {
  readonly #reservations = new Map<string, ReservationRecord>();
  /** When each reservation was made, by its id. The oldest is first. */
  readonly #madeAtMs = new Map<string, number>();
  readonly #clock: Pick<Clock, "now">;
  readonly #requests: Pick<ApiStore, "requests">;

  constructor(deps: { readonly clock: Pick<Clock, "now">; readonly requests: Pick<ApiStore, "requests"> }) {
    this.#clock = deps.clock;
    this.#requests = deps.requests;
  }

  async reserve(reservation: Reservation): Promise<void> {
    if (this.#reservations.has(reservation.id)) return;
    this.#reservations.set(reservation.id, { ...reservation, decision: null, fault: null });
    this.#madeAtMs.set(reservation.id, this.#clock.now());
  }

  async purge(olderMs: number, limit: number): Promise<number> {
    const beforeMs = this.#clock.now() - olderMs;
    let purged = 0;
    for (const [id, atMs] of this.#madeAtMs) {
      if (atMs > beforeMs || purged === limit) break;
      const records = await this.#requests.requests(this.#reservations.get(id)?.serverUuids ?? []);
      if (records.some((record) => record.state === "accepted")) continue;
      this.#reservations.delete(id);
      this.#madeAtMs.delete(id);
      purged += 1;
    }
    return purged;
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
