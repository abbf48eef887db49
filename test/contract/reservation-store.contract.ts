import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReservationStore } from "../../core/cell/reservation-store.ts";
import { serverId } from "./cell-fixtures.ts";

export interface ReservationSubject {
  readonly store: ReservationStore;
  close(): Promise<void>;
}

/** What both bodies of the reservations' store promise. */
export function reservationStoreContract(name: string, makeSubject: () => Promise<ReservationSubject>): void {
  describe(`the reservations' store in ${name}`, () => {
    let subject: ReservationSubject;
    beforeEach(async () => {
      subject = await makeSubject();
    });
    afterEach(() => subject.close());
    const reservation = { id: "r-1", serverUuids: [serverId(2), serverId(1)], minCount: 2 };

    test("keeps a reservation as it was made first", async () => {
      const { store } = subject;
      await store.reserve(reservation);
      await store.reserve({ ...reservation, minCount: 1 });
      expect(await store.reservation("r-1")).toEqual({ ...reservation, decision: null, fault: null });
      expect(await store.reservation("r-2")).toBeNull();
      expect(await store.decide("r-2", "placed", null)).toBeNull();
    });

    test("two schedulers decide one call otherwise at once: the first decision holds for both", async () => {
      const { store } = subject;
      await store.reserve(reservation);
      const decided = await Promise.all([
        store.decide("r-1", "placed", null),
        store.decide("r-1", "refused", "no host"),
        store.decide("r-1", "refused", "no hosts"),
      ]);
      const [first] = decided;
      expect(decided).toEqual([first, first, first]);
      expect(await store.reservation("r-1")).toEqual(first);
      expect(first?.fault === null).toBe(first?.decision === "placed");
    });
  });
}
