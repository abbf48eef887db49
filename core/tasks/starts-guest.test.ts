import { expect, test } from "vitest";
import { OPERATION_KINDS, OPERATIONS } from "./operation-kinds.ts";
import { startsGuest } from "./starts-guest.ts";

/** In these statuses, or in the healed one, the guest of a server runs. */
const RUNNING = ["ACTIVE", "RESCUE", "as-before-or-healed"];

test.each([
  "SHUTOFF",
  "PAUSED",
  "SUSPENDED",
  "RESCUE",
  "SHELVED",
  "SHELVED_OFFLOADED",
  "SOFT_DELETED",
  "ERROR",
] as const)("every operation that makes a server that is %s run starts a guest", (status) => {
  const kinds = OPERATION_KINDS.filter((kind) => OPERATIONS[kind].allowedFrom.includes(status));
  const starting = kinds.filter((kind) => RUNNING.includes(OPERATIONS[kind].finalStatus));
  expect(starting.filter((kind) => !startsGuest(kind))).toEqual([]);
});

test("moves, reboots, rescues and the end of a move may start a guest, also that of a server that runs", () => {
  expect(OPERATION_KINDS.filter(startsGuest)).toEqual([
    ...[
      "resize",
      "migrate",
      "live-migrate",
      "live-migrate-paused",
      "evacuate",
      "unshelve",
      "rebuild",
      "reimage",
      "confirm",
      "revert",
    ],
    ...["start", "reboot", "hard-reboot", "unpause", "resume", "rescue", "unrescue", "restore"],
  ]);
});
