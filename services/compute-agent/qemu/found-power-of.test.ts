import { expect, test } from "vitest";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { bootId } from "../../../runtime/boot-id.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { foundPowerOf, standsStill } from "./found-power-of.ts";

const found = (state: string, values: Parameters<typeof guestRecord>[0] = {}) =>
  foundPowerOf({ record: guestRecord({ hasRun: true, ...values }) } as QemuGuest, state);

test("a guest that QEMU has halted because its disk is full counts as paused, so that nothing boots it anew", () => {
  expect(found("io-error")).toBe("paused");
  // Such a guest cannot be at its source's switch-over.
  expect(found("io-error", { hasRun: false })).toBe("stopped");
});

test("a guest that never ran, or whose memory is saved, is told by its record", () => {
  expect(found("paused", { hasRun: false })).toBe("stopped");
  expect(found("absent", { isSuspended: true })).toBe("suspended");
});

test("a paused guest is paused in the last moments of its transfer, too, and one that ran counts as running", () => {
  const handedTo = { attemptId: "task/h2", isDone: false };
  expect(found("finish-migrate", { handedTo: { ...handedTo, wasRunning: false } })).toBe("paused");
  expect(found("finish-migrate", { handedTo: { ...handedTo, wasRunning: true } })).toBe("running");
});

test("a paused guest whose move broke off is paused, also before the end of the move has paused it again", () => {
  const handedTo = { attemptId: "task/h2", isDone: false, wasRunning: false };
  expect(found("postmigrate", { handedTo })).toBe("paused");
  expect(found("postmigrate", { handedTo: { ...handedTo, isDone: true } })).toBe("stopped");
  expect(found("postmigrate", { handedTo: { ...handedTo, wasRunning: true } })).toBe("stopped");
});

test.each([
  ["finish-migrate", true, true],
  ["paused", true, true],
  ["io-error", true, true],
  ["running", true, false],
  ["finish-migrate", false, false],
  ["paused", false, false],
  ["absent", true, false],
])(
  "a guest in the state %s that ran before its move (%s) counts as running and stands still: %s",
  (state, wasRunning, does) => {
    const record = guestRecord({ hasRun: true, handedTo: { attemptId: "task/h2", isDone: false, wasRunning } });
    expect(standsStill({ record } as QemuGuest, state)).toBe(does);
  },
);

test.each([
  ["was told to stop", { runningIn: null }, "stopped"],
  ["was told to run since the host was started", { runningIn: bootId() }, "crashed"],
  ["ran or was paused when the host ended", { runningIn: "an earlier boot" }, "stopped-with-host"],
  [
    "was handed over before",
    { runningIn: "an earlier boot", handedTo: { attemptId: "t", isDone: false, wasRunning: false } },
    "stopped",
  ],
  ["is suspended", { runningIn: "an earlier boot", isSuspended: true }, "suspended"],
] as const)("a guest without a QEMU that %s is found so", (_, values, power) => {
  expect(found("absent", values)).toBe(power);
});
