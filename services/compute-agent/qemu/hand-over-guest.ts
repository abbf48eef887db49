import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import type { VirtualMachine } from "../../../adapters/qemu/virtual-machine.ts";
import type { HandOffOrder } from "../driver.ts";
import type { GuestName } from "../journal.ts";
import type { CalledOffMoves } from "./called-off-moves.ts";
import { doesNotRun, haltForCopy, type PowerControl, pauseGuest, refuseWithDevices } from "./guest-power.ts";
import {
  callOffHandOver,
  type HandOverControl,
  handOverDisks,
  handOverLive,
  isHaltedForTransfer,
  refuseOtherCpu,
  refuseOtherDisplay,
  refuseSmallerDisks,
} from "./hand-over.ts";
import { interfacesMark, type TransferAddress, tellsMetadata } from "./transfer-address.ts";

export interface LiveHandOverControl extends HandOverControl {
  readonly bytesPerSecond: number;
  readonly calledOff: CalledOffMoves;
  readonly power: PowerControl;
  readonly onHandedOver?: ((guest: GuestName, how: { readonly haltedMs: number }) => void) | undefined;
}

/** Halts the guest and copies its disks to the guest at the destination. Its QEMU is gone when this resolves. */
export async function handOverGuestCold(
  guest: QemuGuest,
  { toAttemptId }: HandOffOrder,
  to: TransferAddress,
  control: HandOverControl & { readonly power: PowerControl },
): Promise<void> {
  await refuseSmallerDisks(guest, to, control);
  await guest.change({ handedTo: { attemptId: toAttemptId, isDone: false, wasRunning: false } });
  await haltForCopy(guest, control.power);
  await handOverDisks(guest, to, control);
  await guest.end();
  await control.power.functions.releaseStopped(guest);
}

/** Hands the guest over while it runs, or continues such a hand-over. A guest whose hand-over fails runs on. A hand-over that QEMU completed is done, also if its end could not be seen at first. */
export async function handOverGuestLive(
  guest: QemuGuest,
  order: HandOffOrder,
  to: TransferAddress,
  control: LiveHandOverControl,
): Promise<void> {
  const { toAttemptId: attemptId, force } = order;
  await takeBackPaused(guest, attemptId, control.power);
  const state = await guest.state();
  const { handedTo, machine } = guest.record;
  const isRepeated = handedTo?.attemptId === attemptId;
  const wasRunning = isRepeated ? handedTo.wasRunning : state === "running";
  const isContinued = isRepeated && isHaltedForTransfer(state);
  if (!isContinued) {
    if (!["running", "paused"].includes(state)) throw doesNotRun(state);
    refuseWithDevices(guest, "be migrated while it runs");
    refuseOtherDisplay(guest, to, order.toHost);
    refuseOtherCpu(guest, to, order.toHost);
    if ((machine.hasVolumeBus === true) !== to.hasVolumeBus) throw otherHardware(to);
    if (interfacesMark(machine) !== to.interfaces) throw otherInterfaces(machine, to);
    await guest.change({ handedTo: { attemptId, isDone: false, wasRunning } });
  }
  let haltedMs: number;
  try {
    haltedMs = await handOverLive(guest, to, { ...control, force, isContinued });
  } catch (error) {
    if (control.signal.aborted) {
      control.calledOff.add(order, attemptId, { isWhole: true });
      throw error;
    }
    const calledOff = await callOffHandOver(guest).catch(() => null);
    // The guest must not be started while QEMU may complete its transfer, so it is called off again.
    if (calledOff === null) control.calledOff.add(order, attemptId, { isWhole: false });
    // The destination has everything if only the look at it had failed.
    if (calledOff?.kind !== "completed") throw error;
    haltedMs = calledOff.haltedMs;
  }
  control.onHandedOver?.(order, { haltedMs });
  await guest.change({ handedTo: { attemptId, isDone: true, wasRunning } });
}

/** Pauses a guest again that was paused when it was handed over to another attempt, in vain: its host was away when the server was left here. */
async function takeBackPaused(guest: QemuGuest, attemptId: string, power: PowerControl): Promise<void> {
  const { handedTo } = guest.record;
  if (handedTo === null || handedTo.attemptId === attemptId || handedTo.wasRunning) return;
  if ((await guest.state()) === "postmigrate") await pauseGuest(guest, power);
}

/** Memory can only be handed over to a machine with the same devices. */
function otherHardware({ hasVolumeBus }: TransferAddress): QemuError {
  const words = hasVolumeBus
    ? "the guest was built without a controller for volumes, which the destination's guest has: stop and start the server, and migrate it again, or migrate it cold"
    : "the guest has a controller for volumes, which the destination's guest lacks: give that host's agent --volume-dir, and migrate the server again";
  return new QemuError("state", words);
}

function otherInterfaces(
  { interfaceSlots, hasMetadataAddress = false }: VirtualMachine,
  { interfaces }: TransferAddress,
): QemuError {
  const ofOld = "stop and start the server, and migrate it again, or migrate it cold";
  if (interfaceSlots === undefined)
    return new QemuError(
      "state",
      `the guest was built without slots for interfaces, which the destination's guest has: ${ofOld}`,
    );
  if (interfaces === "")
    return new QemuError(
      "state",
      "the guest has slots for interfaces, which the destination's guest lacks: update that host's agent, and migrate the server again",
    );
  if (hasMetadataAddress !== tellsMetadata(interfaces))
    return new QemuError(
      "state",
      hasMetadataAddress
        ? "the guest has the metadata address in its network, which the destination's guest lacks: update that host's agent, and migrate the server again"
        : `the guest's network was built without the metadata address, which the destination's guest has: ${ofOld}`,
    );
  return new QemuError("state", `the destination's guest has its interfaces in other slots: ${ofOld}`);
}
