import { expect, test } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { ReservationPurge } from "./reservation-purge.ts";

test("one round deletes all old reservations, however many there are", async () => {
  const batches: number[] = [];
  let old = 2_500;
  const clock = new ManualClock(0);
  const store = {
    purge: async (_: number, limit: number) => {
      const purged = Math.min(limit, old);
      old -= purged;
      batches.push(purged);
      return purged;
    },
  };
  const events = { sweepFailed: () => {} };
  await new ReservationPurge({ store, clock, events }, { reservationsKeptMs: 1 }).purge();
  expect(old).toBe(0);
  expect(batches).toEqual([1_000, 1_000, 500]);
});
