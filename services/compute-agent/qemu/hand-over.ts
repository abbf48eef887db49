import { setTimeout as delay } from "node:timers/promises";
import type { AnswerWait } from "../../../adapters/qemu/check-disks-server.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest, RunState } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import {
  beginMemory,
  cancelTransfer,
  checkPlaces,
  endMirrors,
  memoryAmounts,
  mirrorDisks,
  queryMigration,
  UNDER_WAY,
} from "../../../adapters/qemu/transfer.ts";
import { useTransferKey } from "../../../adapters/qemu/transfer-key.ts";
import { NO_AMOUNTS, type TransferAmounts, type TransferProgress } from "../../../core/agent/transfer-progress.ts";
import { pairDisks } from "./pair-disks.ts";
import { baseMark, displayMark, type TransferAddress } from "./transfer-address.ts";

const POLL_MS = 20;
/** QEMU's state of a guest that it has halted for the end of a transfer. */
const FINISHING = "finish-migrate";
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

/**
 * Transfers a guest with its memory while it runs. When it resolves, neither guest runs: this one is halted (`postmigrate`), and the other
 * one has everything and waits to be started. Before that, a raised signal ends only the waiting. The transfer itself continues up to the
 * switch-over, which it never passes by itself: a forced order may continue it, and `callOffHandOver` ends it.
 * Resolves with how long the guest had stood still by then, in milliseconds.
 */
export async function handOverLive(
  guest: QemuGuest,
  to: TransferAddress,
  control: HandOverControl & { readonly force: boolean; readonly bytesPerSecond: number },
): Promise<number> {
  const { host, memoryPort, disksPort, key } = to;
  const isSecret = key !== null;
  if (memoryPort === null) throw new Error("the guest at the destination does not wait for a guest that runs");
  if (control.force) await guest.execute("stop");
  let disks = NO_AMOUNTS;
  const onProgress = (amounts: TransferAmounts) => {
    disks = amounts;
    control.onProgress({ memory: NO_AMOUNTS, disks });
  };
  if (!UNDER_WAY.includes((await queryMigration(guest)).status ?? "none")) {
    await endMirrors(guest, { isUnwanted: true });
    if (isSecret) await useTransferKey(guest, key, "client");
    if (disksPort !== null) {
      const target = { ...placesOf(guest, to), isSameBase: isSameBase(guest, to) };
      await mirrorDisks(guest, target, { ...control, onProgress });
    }
    await beginMemory(guest, { host, port: memoryPort, bytesPerSecond: control.bytesPerSecond, isSecret });
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
      await endMirrors(guest, { isUnwanted: false });
      await passSwitchOver(guest);
    }
    await delay(POLL_MS);
  }
}

/** Resolves with how long a guest whose transfer is completed has stood still, when QEMU has left it halted for good. */
async function finished(guest: QemuGuest): Promise<number> {
  await settledState(guest);
  return (await queryMigration(guest)).downtime ?? 0;
}

/**
 * The state of a guest whose transfer has ended. QEMU says so a moment before it gives the guest this state. An order that took the guest for
 * one that is still being transferred would boot it, and lose its memory.
 */
async function settledState(guest: QemuGuest): Promise<RunState> {
  const untilMs = performance.now() + FINISHING_MS;
  for (;;) {
    const state = await guest.state();
    if (state !== FINISHING) return state;
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

/** Ends a transfer that is no longer wanted. The guest is left as it was before: it runs on if it ran. */
export async function callOffHandOver(guest: QemuGuest): Promise<void> {
  const { handedTo } = guest.record;
  if (handedTo === null || (await guest.state()) === "absent") return;
  await cancelTransfer(guest);
  const state = await settledState(guest);
  // A transfer that was completed meanwhile leaves the guest to the order that comes next.
  if (handedTo.wasRunning && state === "paused") await guest.execute("cont");
  if (state !== "postmigrate") await guest.change({ handedTo: null });
}

/** Two disks that both began blank have the same base, too. */
const isSameBase = (guest: QemuGuest, { base }: TransferAddress): boolean => baseMark(guest.record.baseSha512) === base;
