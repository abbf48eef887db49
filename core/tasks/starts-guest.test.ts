import { expect, test } from "vitest";
import { OPERATION_KINDS, OPERATIONS } from "./operation-kinds.ts";
import { startsGuest } from "./starts-guest.ts";

/** In these statuses, or in the healed one, the guest of a server runs. */
const RUNNING = ["ACTIVE", "RESCUE", "as-before-or-healed"];

test.each(["SHUTOFF", "RESCUE", "SHELVED", "SHELVED_OFFLOADED", "ERROR"] as const)(
  "every operation that makes a server that is %s run starts a guest",
  (status) => {
    const kinds = OPERATION_KINDS.filter((kind) => OPERATIONS[kind].allowedFrom.includes(status));
    const starting = kinds.filter((kind) => RUNNING.includes(OPERATIONS[kind].finalStatus));
    expect(kinds.filter((kind) => startsGuest(kind, status))).toEqual(starting);
  },
);

test("an operation on a server that runs starts another guest only if it is a move", () => {
  const allowed = OPERATION_KINDS.filter((kind) => OPERATIONS[kind].allowedFrom.includes("ACTIVE"));
  const moves = ["resize", "migrate", "live-migrate", "evacuate", "rebuild"];
  expect(allowed.filter((kind) => startsGuest(kind, "ACTIVE"))).toEqual(moves);
});

test("a suspended server is resumed, and a resized one reverted, by starting a guest", () => {
  expect(
    OPERATION_KINDS.filter(
      (kind) => OPERATIONS[kind].allowedFrom.includes("SUSPENDED") && startsGuest(kind, "SUSPENDED"),
    ),
  ).toEqual(["hard-reboot", "resume"]);
  expect([startsGuest("revert", "VERIFY_RESIZE"), startsGuest("confirm", "VERIFY_RESIZE")]).toEqual([true, false]);
});
