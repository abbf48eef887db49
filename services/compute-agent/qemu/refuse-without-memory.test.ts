import { expect, test } from "vitest";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { NotArrivedError } from "../driver.ts";
import { refuseWithoutMemory } from "./refuse-without-memory.ts";

const SHARED = "qemu://192.0.2.7/?memory=1";
const COPIED = `${SHARED}&disks=2`;

test.each([
  ["whose QEMU still waits", "inmigrate", COPIED, true],
  ["whose QEMU has ended, and whose disks were copied, maybe all of them,", "absent", COPIED, false],
  ["whose QEMU has ended, and which shares its disks,", "absent", SHARED, true],
  ["whose QEMU is there and cannot be asked, and which shares its disks,", "starting", SHARED, false],
  ["whose QEMU has the memory of one that had crashed, and which shares its disks,", "guest-panicked", SHARED, false],
  ["of which nobody knows whether it shares its disks", "absent", "", false],
])("a guest %s is certain to lack something that the other guest has: %j, %j", (_, state, listensAt, isCertain) => {
  const guest = { record: { receives: "memory", listensAt } } as QemuGuest;
  const refuse = () => refuseWithoutMemory(guest, state);
  expect(refuse).toThrow("the memory of the guest has not arrived");
  if (isCertain) expect(refuse).toThrow(NotArrivedError);
  else expect(refuse).not.toThrow(NotArrivedError);
});

test("a guest that waits for no memory is not refused", () => {
  for (const receives of ["disks", null] as const)
    refuseWithoutMemory({ record: { receives, listensAt: COPIED } } as QemuGuest, "absent");
});
