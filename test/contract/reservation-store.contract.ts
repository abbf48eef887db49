import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ApiStore } from "../../core/stores/api/api-store.ts";
import type { ReservationStore } from "../../core/stores/api/reservation-store.ts";
import { serverId, serverSpec } from "./cell-fixtures.ts";

export interface ReservationSubject {
  readonly store: ReservationStore;
  readonly requests: Pick<ApiStore, "accept" | "assignCells">;
  close(): Promise<void>;
}

/** The guarantees of both implementations of the reservations' store. */
export function reservationStoreContract(name: string, makeSubject: () => Promise<ReservationSubject>): void {
  describe(`the reservations' store in ${name}`, () => {
    let subject: ReservationSubject;
    beforeEach(async () => {
      subject = await makeSubject();
    });
    afterEach(() => subject.close());
    const reservation = { id: "r-1", serverUuids: [serverId(2), serverId(1)], minCount: 2 };

    test("keeps a reservation as it was first made", async () => {
      const { store } = subject;
      await store.reserve(reservation);
      await store.reserve({ ...reservation, minCount: 1 });
      expect(await store.reservation("r-1")).toEqual({ ...reservation, decision: null, fault: null });
      expect(await store.reservation("r-2")).toBeNull();
      expect(await store.decide("r-2", "placed", null)).toBeNull();
    });

    test("deletes old reservations, unless one of their servers still waits for a scheduler", async () => {
      const { store, requests } = subject;
      await store.reserve(reservation);
      await store.reserve({ id: "r-2", serverUuids: [serverId(3)], minCount: 1 });
      await requests.accept([1, 2].map((server) => serverSpec(server)));
      expect(await store.purge(3_600_000, 10)).toBe(0);
      expect(await store.purge(0, 10)).toBe(1);
      expect([await store.reservation("r-1"), await store.reservation("r-2")]).toMatchObject([{ id: "r-1" }, null]);
      await requests.assignCells([1, 2].map((server) => ({ serverUuid: serverId(server), from: null, to: "c" })));
      expect([await store.purge(0, 10), await store.purge(0, 10)]).toEqual([1, 0]);
      expect(await store.reservation("r-1")).toBeNull();
    });

    test("when two schedulers decide one call differently at once, the first decision holds for both", async () => {
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
