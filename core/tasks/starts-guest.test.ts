import { expect, test } from "vitest";
import { OPERATION_KINDS, OPERATIONS } from "./operation-kinds.ts";
import { startsGuest } from "./starts-guest.ts";

test.each(["SHUTOFF", "SHELVED", "SHELVED_OFFLOADED", "ERROR"] as const)(
  "every operation that makes a server that is %s ACTIVE starts a guest",
  (status) => {
    const kinds = OPERATION_KINDS.filter((kind) => OPERATIONS[kind].allowedFrom.includes(status));
    const starting = kinds.filter((kind) => ["ACTIVE", "as-before-or-healed"].includes(OPERATIONS[kind].finalStatus));
    expect(kinds.filter((kind) => startsGuest(kind, status))).toEqual(starting);
  },
);

test("an operation on a server that runs starts no other guest, but an evacuation does", () => {
  expect(OPERATION_KINDS.filter((kind) => startsGuest(kind, "ACTIVE"))).toEqual(["evacuate"]);
});
