import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest, RunState } from "../../../adapters/qemu/qemu-guest.ts";
import { NotArrivedError } from "../driver.ts";
import { parseTransferAddress } from "./transfer-address.ts";

/**
 * Refuses to let a guest run that was prepared for the memory of another one and has none. A QEMU that still waits for the memory tells that it never came. One that has ended may have
 * received all of it before, and then the disks that it has copied are whole, and may be the only ones. A guest without a QEMU that shares the disks of the other one has nothing of its own to
 * lose. A QEMU in any other state, or one that cannot be asked, may have the memory.
 */
export function refuseWithoutMemory(guest: Pick<QemuGuest, "record">, state: RunState): void {
  const { receives, listensAt } = guest.record;
  if (receives !== "memory") return;
  if (state === "inmigrate") throw new NotArrivedError("the memory of the guest has not arrived on this host");
  const reason = "the memory of the guest has not arrived on this host, or is lost";
  throw state === "absent" && sharesDisks(listensAt) ? new NotArrivedError(reason) : new QemuError("state", reason);
}

/** Whether the guest is certain to receive no disks. */
function sharesDisks(listensAt: string): boolean {
  try {
    return parseTransferAddress(listensAt)?.disksPort === null;
  } catch {
    return false;
  }
}
