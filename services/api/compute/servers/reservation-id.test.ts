import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { requestDigitsOf, reservationIdOf } from "./reservation-id.ts";

test("a reservation id has the last ten digits of the request's id", () => {
  const ids = Array.from({ length: 200 }, () => `req-${randomUUID()}`);
  for (const id of [...ids, `req-${"0".repeat(36)}`, `req-${"f".repeat(36)}`])
    expect([id, requestDigitsOf(reservationIdOf(id))]).toEqual([id, id.slice(30)]);
});

test.each(["", "r-", "r-0000000", "r-000000000", "r-0000000A", "r-zzzzzzzz", "x-00000000", "req-1"])(
  "no request has the reservation id '%s'",
  (text) => {
    expect(requestDigitsOf(text)).toBeNull();
  },
);
