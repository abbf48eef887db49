import { setTimeout as delay } from "node:timers/promises";
import type { AnswerWait } from "../../../adapters/qemu/check-disks-server.ts";
import { checkMirrors, checkPlaces, endMirrors, mirrorDisks } from "../../../adapters/qemu/disk-mirrors.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest, RunState } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import {
  beginMemory,
  cancelTransfer,
  memoryAmounts,
  queryMigration,
  UNDER_WAY,
} from "../../../adapters/qemu/transfer.ts";
import { useTransferKey } from "../../../adapters/qemu/transfer-key.ts";
import { NO_AMOUNTS, type TransferAmounts, type TransferProgress } from "../../../core/agent/transfer-progress.ts";
import { FINISHING } from "./found-power-of.ts";
import { isUsedElsewhere } from "./guest-power.ts";
import { pairDisks } from "./pair-disks.ts";
import { baseMark, displayMark, type TransferAddress } from "./transfer-address.ts";

const POLL_MS = 20;
/** The state of a guest whose QEMU runs and does not listen. */
const ENDING = "starting";
/** QEMU's states of a guest that it has halted for the end of a transfer, and of one whose transfer has ended while the guest was halted. */
const HALTED_FOR_TRANSFER: readonly RunState[] = [FINISHING, "postmigrate"];
/** How long QEMU may take to finish with a guest whose transfer has ended. It needs a moment, and more on a busy machine. */
const FINISHING_MS = 20_000;

export interface HandOverControl extends AnswerWait {
  onProgress(progress: TransferProgress): void;
}

/**
 * Copies a halted guest's disks to another guest that waits for them. The guest's QEMU must exist, and ends afterwards, so that nothing can
 * write to the disks afterwards.
 */
export async function handOverDisks(guest: QemuGuest, to: TransferAddress, control: HandOverControl): Promise<void> {
  const onProgress = (disks: TransferAmounts) => control.onProgress({ memory: NO_AMOUNTS, disks });
  const places = placesOf(guest, to);
  try {
    if (to.key !== null) await useTransferKey(guest, to.key, "client");
    await mirrorDisks(guest, { ...places, isSameBase: isSameBase(guest, to) }, { ...control, onProgress });
    await endMirrors(guest, { isUnwanted: false });
  } catch (error) {
    await endMirrors(guest, { isUnwanted: true });
    throw error;
  }
}

/**
 * Refuses to hand a guest over that runs to one that has no room for its disks, as after a resize to a smaller flavor, before the guest is halted. The disks of a guest
 * without a QEMU are looked at when they are copied.
 */
export async function refuseSmallerDisks(guest: QemuGuest, to: TransferAddress, wait: AnswerWait): Promise<void> {
  const places = placesOf(guest, to);
  if (!["running", "paused"].includes(await guest.state())) return;
  if (to.key !== null) await useTransferKey(guest, to.key, "client");
  await checkPlaces(guest, places, wait);
}

function placesOf(guest: QemuGuest, { host, disksPort: port, key, roles }: TransferAddress) {
  if (port === null) throw new Error("the guest at the destination does not wait for disks");
  return { host, port, isSecret: key !== null, disks: pairDisks(guest.record.machine.disks, roles) };
}

/**
 * Refuses a live move to a guest with another display, before anything is transferred: a running machine cannot change its devices, and QEMU would
 * notice only after all memory was sent. An older agent at the destination does not tell what its guest has, so its guest is not refused.
 */
export function refuseOtherDisplay(guest: QemuGuest, { display: there }: TransferAddress, toHost: string): void {
  const here = displayMark(guest.record.machine);
  if (there === null || there === here) return;
  const has = (display: string) => (display === "none" ? "no display" : `a display of the kind ${display}`);
  throw new QemuError(
    "state",
    `the guest has ${has(here)}, and host ${toHost} prepared one with ${has(there)}: a running guest cannot change its display. Give both hosts the same --vnc-enabled and --video-model, or migrate the server while it is stopped`,
  );
}

/**
 * Refuses a live move to a guest with another CPU model, before anything is transferred: the programs in a running guest know what its CPU can do,
 * and QEMU does not compare the two. An older agent at the destination does not tell its guest's model, so its guest is not refused.
 */
export function refuseOtherCpu(guest: QemuGuest, { cpuModel: there }: TransferAddress, toHost: string): void {
  const here = guest.record.machine.cpuModel;
  if (there === null || there === here) return;
  throw new QemuError(
    "state",
    `the guest has the CPU model ${here}, and host ${toHost} prepared one with ${there}: a running guest cannot change its CPU. Give both hosts the same --cpu-models and --cpu-model-extra-flags, or migrate the server while it is stopped`,
  );
}

/** Whether QEMU has halted the guest for a transfer, which is in its last moments or has ended. Then no other one may be begun: the destination may have everything. */
export const isHaltedForTransfer = (state: RunState): boolean => HALTED_FOR_TRANSFER.includes(state);

/**
 * Transfers a guest with its memory while it runs. When it resolves, neither guest runs: this one is halted (`postmigrate`) or its QEMU is gone, and the other
 * one has everything and waits to be started. Before that, a raised signal ends only the waiting. The transfer itself continues up to the
 * switch-over, which it never passes by itself: a forced order may continue it, and `callOffHandOver` ends it.
 * With `isContinued` the transfer to this guest has been begun and is halted: it is never begun again, also if it has ended meanwhile.
 * Resolves with how long the guest had stood still by then, in milliseconds.
 */
export async function handOverLive(
  guest: QemuGuest,
  to: TransferAddress,
  control: HandOverControl & {
    readonly force: boolean;
    readonly isContinued: boolean;
    readonly bytesPerSecond: number;
  },
): Promise<number> {
  let disks = NO_AMOUNTS;
  let areComplete = false;
  if (!control.isContinued) {
    const onProgress = (amounts: TransferAmounts) => {
      disks = amounts;
      control.onProgress({ memory: NO_AMOUNTS, disks });
    };
    await beginLive(guest, to, { ...control, onProgress });
  }
  for (;;) {
    control.signal.throwIfAborted();
    const info = await queryMigration(guest);
    control.onProgress({ memory: memoryAmounts(info), disks });
    if (info.status === "completed") return finished(guest);
    if (info.status === "failed" || info.status === "cancelled")
      throw new QemuError(
        "state",
        `the transfer of the guest's memory broke off: ${info["error-desc"] ?? info.status}`,
      );
    if (info.status === "pre-switchover") {
      // A move that was called off in part, or in the middle, has memory under way without its disks.
      if (!areComplete && to.disksPort !== null) await checkMirrors(guest, placesOf(guest, to).disks);
      // The move may have been called off while QEMU answered. It has not passed its switch-over by itself, and must not be told to. A forced order may still
      // continue it, for which its disks must still be copied, so this is the last moment.
      control.signal.throwIfAborted();
      await endMirrors(guest, { isUnwanted: false });
      areComplete = true;
      await passSwitchOver(guest);
    }
    await delay(POLL_MS);
  }
}

/** Begins the transfer of disks and memory, unless it is under way. */
async function beginLive(
  guest: QemuGuest,
  to: TransferAddress,
  control: AnswerWait & {
    readonly force: boolean;
    readonly bytesPerSecond: number;
    onProgress(disks: TransferAmounts): void;
  },
): Promise<void> {
  const { host, memoryPort, disksPort, key } = to;
  const isSecret = key !== null;
  if (memoryPort === null) throw new Error("the guest at the destination does not wait for a guest that runs");
  if (control.force) await guest.execute("stop");
  if (UNDER_WAY.includes((await queryMigration(guest)).status ?? "none")) return;
  await endMirrors(guest, { isUnwanted: true });
  if (isSecret) await useTransferKey(guest, key, "client");
  if (disksPort !== null)
    await mirrorDisks(guest, { ...placesOf(guest, to), isSameBase: isSameBase(guest, to) }, control);
  await beginMemory(guest, { host, port: memoryPort, bytesPerSecond: control.bytesPerSecond, isSecret });
}

/**
 * Resolves with how long a guest whose transfer is completed has stood still, when it can no longer run here by itself: QEMU has left it halted for good, or has
 * ended. QEMU calls a transfer completed only after the destination has confirmed, over the connection of the transfer, that it has taken everything over, so the guest
 * is there whatever becomes of this QEMU.
 */
async function finished(guest: QemuGuest): Promise<number> {
  const state = await settledState(guest);
  if (state === "absent") return 0;
  if (state !== "postmigrate")
    throw new QemuError("state", `the guest was transferred and is not halted since (${state})`);
  try {
    return (await queryMigration(guest)).downtime ?? 0;
  } catch (error) {
    if ((await settledState(guest)) === "absent") return 0;
    throw error;
  }
}

/**
 * The state of a guest whose transfer has ended. QEMU says so a moment before it gives the guest this state. An order that took the guest for
 * one that is still being transferred would boot it, and lose its memory. A QEMU that no longer listens is about to end.
 */
async function settledState(guest: QemuGuest): Promise<RunState> {
  const untilMs = performance.now() + FINISHING_MS;
  for (;;) {
    const state = await guest.state().catch((error: unknown) => {
      if (error instanceof QmpError && error.code === "lost") return ENDING;
      throw error;
    });
    if (state !== FINISHING && state !== ENDING) return state;
    if (performance.now() > untilMs)
      throw new QemuError("state", `QEMU does not finish the guest's transfer within ${FINISHING_MS / 1_000} s`);
    await delay(POLL_MS);
  }
}

/** Lets a transfer pass its switch-over, before which it has paused. */
async function passSwitchOver(guest: QemuGuest): Promise<void> {
  try {
    await guest.execute("migrate-continue", { state: "pre-switchover" });
  } catch (error) {
    // QEMU continues a while after it was told to. It was told so at an earlier look, and had not begun at this one.
    const isRefused = error instanceof QmpError && error.code === "refused";
    if (!isRefused || (await queryMigration(guest)).status === "pre-switchover") throw error;
  }
}

/** How a transfer ended that was called off. `haltedMs` is how long the guest had stood still when the destination had everything. */
export type CalledOff = { readonly kind: "ended" } | { readonly kind: "completed"; readonly haltedMs: number };

const ENDED: CalledOff = { kind: "ended" };

/**
 * Ends a transfer that is no longer wanted. The guest is left as it was before: it runs on if it ran, and is paused if it was paused. A transfer after which the
 * destination has everything leaves the guest to the order that comes next, and resolves as `completed`. So is a guest whose QEMU is gone.
 */
export async function callOffHandOver(guest: QemuGuest): Promise<CalledOff> {
  const { handedTo } = guest.record;
  if (handedTo === null || (await guest.state()) === "absent") return ENDED;
  await cancelTransfer(guest);
  const state = await settledState(guest);
  // Nobody knows whether the destination had everything when this QEMU ended.
  if (state === "absent") return ENDED;
  if (state === "postmigrate") {
    const { status, downtime = 0 } = await queryMigration(guest);
    if (status === "completed") return { kind: "completed", haltedMs: downtime };
  }
  // QEMU gives a guest that did not run when its transfer broke off the state of one that was transferred (up to version 8.1), which only a guest that goes on leaves.
  const isHalted = state === "postmigrate" || (state === "paused" && handedTo.wasRunning);
  if (isHalted && !(await goesOn(guest))) return ENDED;
  if (!handedTo.wasRunning && (isHalted || state === "running")) await guest.execute("stop");
  await guest.change({ handedTo: null });
  return ENDED;
}

/** Lets a halted guest go on. False if the destination has taken the disks, which it does when everything of a paused guest has arrived. */
async function goesOn(guest: QemuGuest): Promise<boolean> {
  try {
    await guest.execute("cont");
    return true;
  } catch (error) {
    if (isUsedElsewhere(error)) return false;
    throw error;
  }
}

/** Two disks that both began blank have the same base, too. */
const isSameBase = (guest: QemuGuest, { base }: TransferAddress): boolean => baseMark(guest.record.baseSha512) === base;
