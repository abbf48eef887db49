import { expect, test } from "vitest";
import { QemuGuest, type RunState } from "../../../adapters/qemu/qemu-guest.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import type { HandOffOrder } from "../driver.ts";
import { interruptGuest, type PowerControl, suspendGuest } from "./guest-power.ts";
import { handOverGuestLive, type LiveHandOverControl } from "./hand-over-guest.ts";
import type { TransferAddress } from "./transfer-address.ts";

const NAME = { host: "h", serverUuid: "s", attemptId: "t1/0" };
const WHY = /^the guest was halted by QEMU because an access to one of its disks failed.* make room .* unpause/;

/** A guest whose QEMU is in this state, and the commands that QEMU was given. */
function guestIn(state: RunState) {
  const executed: string[] = [];
  const guest = Object.assign(Object.create(QemuGuest.prototype), {
    state: async () => state,
    execute: async (command: string) => void executed.push(command),
    change: async () => expect.unreachable("the record is left as it is"),
  }) as QemuGuest;
  const [root] = [{ node: "disk0", file: "disk0.qcow2" }];
  const record = guestRecord({ ...NAME, hasRun: true });
  Object.defineProperty(guest, "record", { value: { ...record, machine: { ...record.machine, disks: [root] } } });
  return { guest, executed };
}

test("a guest that QEMU has halted at a failed write is interrupted like a paused one", async () => {
  const { guest, executed } = guestIn("io-error");
  await interruptGuest(guest);
  expect(executed).toEqual(["inject-nmi"]);
});

test("a guest that QEMU has halted at a failed write is neither suspended nor migrated live, with the reason", async () => {
  const { guest, executed } = guestIn("io-error");
  const signal = new AbortController().signal;
  await expect(suspendGuest(guest, { signal } as PowerControl)).rejects.toThrow(WHY);
  const order = { ...NAME, toHost: "h2", toAttemptId: "t2/0", live: true, force: false } as HandOffOrder;
  const handing = handOverGuestLive(guest, order, {} as TransferAddress, { signal } as LiveHandOverControl);
  await expect(handing).rejects.toThrow(WHY);
  expect(executed).toEqual([]);
});
