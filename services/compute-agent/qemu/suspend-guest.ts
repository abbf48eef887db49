import { endOfTransfer } from "../../../adapters/qemu/end-of-transfer.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import { saveMemory } from "../../../adapters/qemu/saved-memory.ts";
import { messageOf } from "../message-of.ts";
import { doesNotRun, type PowerControl, refuseRescued, refuseWithDevices } from "./guest-power.ts";

/** How long QEMU may need to let a guest go on whose memory could not be saved. It does so later, too, when it has been busy for longer. */
const GO_ON_MS = 5_000;

/**
 * Saves the guest's memory on its host, and ends its QEMU. If that fails, a guest that ran goes on. The record says that it ran before it is halted, so that this holds
 * also for a guest whose agent died in the middle, when the next one repeats the order.
 */
export async function suspendGuest(guest: QemuGuest, { signal }: Pick<PowerControl, "signal">): Promise<void> {
  // An agent that died after it recorded this left the QEMU.
  if (guest.record.isSuspended) return guest.end();
  refuseRescued(guest);
  refuseWithDevices(guest, "be suspended");
  // This may be refused, and must not leave a guest halted that runs.
  await endOfTransfer(guest);
  const state = await guest.state();
  if (state !== "running" && state !== "paused") throw doesNotRun(state);
  // A halted guest has the mark of an earlier attempt if nobody could let it go on since. A pause removes the mark.
  if (state === "running") await guest.change({ isSaving: true });
  try {
    if (state === "running") await guest.execute("stop");
    await saveMemory(guest, signal);
    await guest.change({ isSuspended: true, isSaving: undefined, runningIn: null });
  } catch (error) {
    if (guest.record.isSaving === true) throw await goOn(guest, error);
    // A guest that was paused stays so, and the next agent should find it so, too. Whoever lets it go on writes the record first.
    if (guest.isRecordUnsure) await guest.change({ isSuspended: false }).catch(() => undefined);
    throw error;
  }
  await guest.end();
}

/**
 * Lets the guest go on after its memory could not be saved. Returns the error for the caller. A guest that goes on must not be taken for a suspended one by the next agent, which would bring back its
 * former memory and disks. So the record says first that it is not, in the place of one whose writing has failed half-way.
 */
async function goOn(guest: QemuGuest, error: unknown): Promise<unknown> {
  try {
    await guest.change({ isSuspended: false });
    await guest.execute("cont", {}, GO_ON_MS);
    await guest.change({ isSaving: undefined });
    return error;
  } catch (left) {
    if (left instanceof QmpError && left.code === "lost") return error;
    const why = `${messageOf(error)}; the guest stands still, since it could not be told to go on, and is started when its host is next compared: ${messageOf(left)}`;
    return new QemuError("state", why, { cause: error });
  }
}
