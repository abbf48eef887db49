import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { checkHugePages } from "../../../adapters/qemu/check-huge-pages.ts";
import { hostDeviceId, readyHostDevices } from "../../../adapters/qemu/host-devices.ts";
import type { ImageCache } from "../../../adapters/qemu/image-cache.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest, RunState } from "../../../adapters/qemu/qemu-guest.ts";
import { QmpError } from "../../../adapters/qemu/qmp-error.ts";
import { forgetMemory, hasMemoryFile, loadMemory, removeMemoryFile } from "../../../adapters/qemu/saved-memory.ts";
import { stopListeningForDisks } from "../../../adapters/qemu/transfer.ts";
import { forgetTransferKey } from "../../../adapters/qemu/transfer-key.ts";
import { RESCUE_DISK, type UserNetwork } from "../../../adapters/qemu/virtual-machine.ts";
import type { VolumeFiles } from "../../../adapters/qemu/volume-files.ts";
import { hasDevice } from "../../../adapters/qemu/volume-plugs.ts";
import { deviceName } from "../../../core/pinning/host-device.ts";
import type { GuestInterface } from "../../../proto/gen/berth/shared.ts";
import { bootId } from "../../../runtime/boot-id.ts";
import { FINISHING, STALLED } from "./found-power-of.ts";
import type { GuestFunctions } from "./guest-functions.ts";
import { changeInterfaces, ensureInterfaceSlots, followedPorts, followUserNetwork } from "./guest-interfaces.ts";
import { ensureVolumeBus, forgetHalts, plugVolumes } from "./guest-volumes.ts";
import { refuseWithoutMemory } from "./refuse-without-memory.ts";

const POLL_MS = 20;
/** How long QEMU may need to take over memory that has arrived completely. */
const TAKE_OVER_MS = 3_000;
/** How long another QEMU, which was told to end, may need to give up disks that this one takes over: its host may be busy, or its agent slow. */
const GIVE_UP_DISKS_MS = 20_000;
/** QEMU's refusal to use a disk that another QEMU uses. */
const LOCKED = /Failed to get "(write|consistent read)" lock/;

/** Whether QEMU has refused to use a disk because another QEMU uses it. */
export const isUsedElsewhere = (error: unknown): boolean => error instanceof QmpError && LOCKED.test(error.message);

export interface PowerControl {
  /** The program of QEMU. */
  readonly program: string;
  /** The root of the files of /sys and /dev that describe the host's devices. */
  readonly sysroot: string;
  /** What the host's network cards know of the guest's virtual functions. */
  readonly functions: GuestFunctions;
  /** The files of volumes. Null on a host that has none. */
  readonly volumes: VolumeFiles | null;
  /** The copies of images on which guests' disks are built. */
  readonly images: Pick<ImageCache, "checkBase">;
  /** What the guest reaches in QEMU's own network from its next boot on. */
  readonly userNetwork: UserNetwork;
  /** How long a guest may take to power off by itself, after its power button was pressed. */
  readonly shutdownMs: number;
  /** A press of the power button is lost while a guest boots, so it is repeated at this interval (Nova: shutdown_retry_interval). */
  readonly pressAgainMs: number;
  readonly signal: AbortSignal;
}

/**
 * Lets the guest run, whatever its present state: a guest without a QEMU is booted, one that powered off is reset, and any other one
 * continues. Ends a rescue.
 */
export async function startGuest(guest: QemuGuest, control: PowerControl): Promise<void> {
  await endRescue(guest);
  if (guest.record.isSuspended) return resumeGuest(guest, control);
  const state = await settledState(guest, control.signal);
  switch (state) {
    case "running":
    case "suspended":
      return;
    case "prelaunch":
      // A guest in this state has done nothing yet that a boot would lose.
      if (await lacksDevices(guest)) return boot(guest, control);
      await control.functions.connect(guest, control.signal);
      return run(guest, control);
    case "paused":
    case "postmigrate":
    case STALLED:
      return run(guest, control);
    case "shutdown":
      await control.functions.connect(guest, control.signal);
      await guest.execute("system_reset");
      return run(guest, control);
    case FINISHING:
      // A boot would end the QEMU, and with it the only memory of the guest if the destination does not have all of it.
      throw new QemuError(
        "state",
        "QEMU has not finished the guest's transfer to another host: it goes on here when QEMU has given the transfer up, and is not booted meanwhile, because its memory would be lost",
      );
    default:
      // A boot would lose what the guest was doing, and the source still has it.
      refuseWithoutMemory(guest, state);
      return boot(guest, control);
  }
}

/**
 * Stops the guest: its power button is pressed, and after `shutdownMs` its power is cut. Nothing of it is left but its disks. A guest that never
 * ran on this host keeps waiting as it is, unless another one's memory has arrived. Ends a rescue.
 */
export async function stopGuest(guest: QemuGuest, control: PowerControl): Promise<void> {
  await endRescue(guest);
  const state = await guest.state();
  if (state === "absent") {
    const { runningIn, isSuspended } = guest.record;
    if (runningIn !== null || isSuspended) await guest.change({ runningIn: null, isSuspended: false });
    return control.functions.releaseStopped(guest);
  }
  if (!guest.record.hasRun && state !== "running" && state !== "paused") return;
  if (state === "running") await pressPowerButton(guest, control);
  if (guest.record.isSuspended) await guest.change({ isSuspended: false });
  // This is recorded before QEMU ends, so that a guest found without its QEMU counts as stopped and not as crashed.
  await guest.change({ runningIn: null });
  await guest.end();
  await control.functions.releaseStopped(guest);
}

/** The interfaces that a guest is to have, and the host's bridge to which they are attached, if they are. */
export interface WantedInterfaces {
  readonly interfaces: readonly GuestInterface[];
  readonly bridge: string | null;
}

/** Restarts the guest. A soft reboot lets it shut down first. A hard one gives it the `wanted` interfaces while it has no QEMU, and is refused before that if they cannot be connected. Ends a rescue. */
export async function rebootGuest(
  guest: QemuGuest,
  control: PowerControl & {
    readonly isSoft: boolean;
    readonly wanted: WantedInterfaces | null;
  },
): Promise<void> {
  await endRescue(guest);
  if (control.isSoft && (await guest.state()) === "running") {
    await pressPowerButton(guest, control);
    await guest.execute("system_reset");
    return run(guest, control);
  }
  if (control.wanted !== null) {
    const { interfaces, bridge } = control.wanted;
    // What cannot be connected is refused while the guest runs still.
    followedPorts(guest, interfaces);
    await guest.reach();
    await guest.end();
    await guest.change({ isSuspended: false });
    await changeInterfaces(guest, interfaces, { bridge, functions: control.functions, signal: control.signal });
  }
  return boot(guest, control);
}

/**
 * Pauses the guest. A guest to which a paused one was handed over is paused already, and its record says so from now on. A guest that was handed over in vain has
 * released its disks, and QEMU takes them again only for a guest that runs on, so it runs for a moment.
 */
export async function pauseGuest(guest: QemuGuest, control: PowerControl): Promise<void> {
  refuseRescued(guest);
  const state = await settledState(guest, control.signal);
  if (state === "postmigrate") {
    await run(guest, control);
    await guest.execute("stop");
    return;
  }
  if (state === "paused" || state === STALLED) {
    if (guest.record.receives !== null || guest.record.handedTo !== null) await settleHere(guest);
    else await forgetSuspend(guest);
    await forgetHalts(guest);
    return;
  }
  refuseWithoutMemory(guest, state);
  if (state !== "running") throw new QemuError("state", `the guest does not run (${state})`);
  await forgetSuspend(guest);
  await forgetHalts(guest);
  await guest.execute("stop");
}

/** Lets a paused guest go on, also one that was handed over in vain and that nobody has paused again since. */
export async function unpauseGuest(guest: QemuGuest, control: PowerControl): Promise<void> {
  const state = await guest.state();
  if (state === "running") return forgetSuspend(guest);
  if (state === "postmigrate") return run(guest, control);
  if (state !== "paused" && state !== STALLED) throw new QemuError("state", `the guest is not paused (${state})`);
  await forgetSuspend(guest);
  await guest.execute("cont");
}

/**
 * Ends an attempt to suspend a guest whose QEMU has the guest still. The record must not say of a guest that goes on, not even to the next process alone, that it is suspended: its former memory
 * would be brought back. Nor may it say of one that is paused on purpose that it goes on when it cannot be suspended.
 */
async function forgetSuspend(guest: QemuGuest): Promise<void> {
  const { isSuspended, isSaving = false } = guest.record;
  if (isSuspended || isSaving || guest.isRecordUnsure) await guest.change({ isSuspended: false, isSaving: undefined });
}

/** Sends every CPU of the guest a non-maskable interrupt, at which its kernel does what it is configured for. */
export async function interruptGuest(guest: QemuGuest): Promise<void> {
  const state = await guest.state();
  if (!["running", "paused", STALLED].includes(state))
    throw new QemuError("state", `the guest does not run (${state})`);
  await guest.execute("inject-nmi");
}

/** The refusal of a guest in this state by an order that needs one that runs or is paused, and whose disks can be written. */
export function doesNotRun(state: RunState): QemuError {
  if (state !== STALLED) return new QemuError("state", `the guest does not run (${state})`);
  return new QemuError(
    "state",
    "the guest was halted by QEMU because an access to one of its disks failed, most likely for lack of room: make room where the disk is, and unpause or start the server, then repeat this",
  );
}

/** Boots a guest whose record says that it is in rescue mode. */
export function startRescued(guest: QemuGuest, control: PowerControl): Promise<void> {
  return boot(guest, control);
}

/**
 * Ends the guest's rescue, if it is in one: cuts its power, as Nova does, and removes the rescue disk. Afterwards the guest is stopped. The record
 * says that the guest is stopped before QEMU ends, and that it is rescued until QEMU has ended, so that it is never taken for another guest. It says
 * so until the disk is removed, too, so that an agent that dies here leaves no disk of which its next process does not know.
 */
export async function endRescue(guest: QemuGuest): Promise<void> {
  if (guest.record.rescue === undefined) return;
  await guest.change({ runningIn: null });
  await guest.end();
  await guest.storage.work(() => rm(join(guest.dir, RESCUE_DISK.file), { force: true }), { isSlow: true });
  await guest.change({ rescue: undefined });
}

/** Makes the guest ready for a hand-over: ends its rescue, or rejects the hand-over while the guest runs. */
export async function leaveRescue(guest: QemuGuest, { live }: { readonly live: boolean }): Promise<void> {
  if (live) refuseRescued(guest);
  else await endRescue(guest);
}

/** Rejects what cannot be done to a guest in rescue mode, whose state is not the server's. */
export function refuseRescued({ record }: QemuGuest): void {
  if (record.rescue !== undefined) throw new QemuError("state", "the guest is in rescue mode");
}

/** Rejects what QEMU cannot do with a guest that has devices of its host, since their state stays there. */
export function refuseWithDevices({ record }: QemuGuest, doing: string): void {
  const devices = record.pinning?.devices ?? [];
  if (devices.length > 0)
    throw new QemuError(
      "state",
      `the guest has devices of its host (${devices.map(deviceName).join(", ")}), so it cannot ${doing}: stop the server instead`,
    );
}

/** Whether the guest's QEMU was started to prepare the guest or to copy its disks, without the guest's devices of its host. */
async function lacksDevices(guest: QemuGuest): Promise<boolean> {
  const devices = guest.record.pinning?.devices ?? [];
  const last = devices.at(-1);
  return last !== undefined && !(await hasDevice(guest, hostDeviceId(devices, last)));
}

/** Lets a suspended guest continue from its saved state, which is then removed. */
export async function resumeGuest(guest: QemuGuest, control: PowerControl): Promise<void> {
  if (guest.record.isSuspended) {
    await endRescue(guest);
    await bootHalted(guest, control);
    await loadMemory(guest, control.signal);
    await run(guest, control);
  } else await startGuest(guest, control);
  // Also when the guest goes on already: an agent that died right after that left the saved state.
  await forgetMemory(guest, control.signal);
}

/** Halts the guest permanently before its disks are copied. Its QEMU stays, or is started, for the copying. */
export async function haltForCopy(guest: QemuGuest, control: PowerControl): Promise<void> {
  const state = await guest.state();
  if (state === "running") {
    await pressPowerButton(guest, control);
    if ((await guest.state()) === "running") await guest.execute("stop");
  } else if (["absent", "starting", "inmigrate"].includes(state)) {
    await guest.end();
    await guest.boot(control.program, { isReceiving: false, hasDevices: false });
  }
}

async function boot(guest: QemuGuest, control: PowerControl): Promise<void> {
  // A guest that runs goes on while its storage does not answer, and could not be started then.
  await guest.reach();
  await guest.end();
  await removeMemoryFile(guest);
  await ensureVolumeBus(guest, control.volumes);
  await ensureInterfaceSlots(guest);
  await followUserNetwork(guest, control.userNetwork);
  await bootHalted(guest, control);
  await run(guest, control);
}

/**
 * Starts the guest's QEMU with the guest's volumes, halted. A guest that does not get all of them keeps none, so that others can have them. Rejects with a reason
 * if devices or huge pages of the guest are gone, as after a restart of the host, if its virtual functions cannot be connected, or if the image below its disk was changed.
 */
async function bootHalted(guest: QemuGuest, control: PowerControl): Promise<void> {
  const { program, volumes, sysroot } = control;
  await guest.end();
  const { pinning, baseSha512 } = guest.record;
  if (baseSha512 !== "") await control.images.checkBase(baseSha512, control.signal);
  await readyHostDevices(pinning?.devices ?? [], sysroot);
  if (pinning !== undefined) checkHugePages(pinning, sysroot);
  await control.functions.connect(guest, control.signal);
  await guest.boot(program, { isReceiving: false, hasDevices: true, signal: control.signal });
  try {
    await plugVolumes(guest, volumes);
  } catch (error) {
    await guest.end();
    throw error;
  }
}

/** The record is written first, so that the record never says of a running guest that it has never run. */
async function run(guest: QemuGuest, { volumes, signal }: Pick<PowerControl, "volumes" | "signal">): Promise<void> {
  await plugVolumes(guest, volumes);
  const bootsFromVolume = guest.record.volumes?.some(({ isRoot }) => isRoot === true) ?? false;
  // The firmware reads the order of the boot disks at a reset only, and the volume has come since QEMU was started. A reset would lose memory that was loaded.
  const isNew = bootsFromVolume && (await guest.state()) === "prelaunch" && !(await hasMemoryFile(guest));
  if (isNew) await guest.execute("system_reset");
  await settleHere(guest);
  await continueWithDisks(guest, signal);
}

/**
 * Lets the guest continue. A guest that was handed over in vain takes the locks of shared disks back, which the destination's QEMU has until
 * it has ended, a moment after it was told to.
 */
async function continueWithDisks(guest: QemuGuest, signal: AbortSignal): Promise<void> {
  const isTakenBack = (await guest.state()) === "postmigrate";
  for (let waited = 0; ; waited += POLL_MS) {
    try {
      await guest.execute("cont");
      return;
    } catch (error) {
      const isLocked = isTakenBack && isUsedElsewhere(error);
      if (!isLocked || waited >= GIVE_UP_DISKS_MS) throw error;
    }
    signal.throwIfAborted();
    await delay(POLL_MS);
  }
}

/** Records that the guest is this host's from now on, and ends its waiting for what another host hands over. */
async function settleHere(guest: QemuGuest): Promise<void> {
  await guest.pin();
  const { hasRun, runningIn, isSuspended, isSaving = false, receives, handedTo } = guest.record;
  const boot = bootId();
  await stopListeningForDisks(guest);
  if (receives !== null) await forgetTransferKey(guest);
  const differs = !hasRun || runningIn !== boot || isSuspended || isSaving || receives !== null || handedTo !== null;
  if (differs || guest.isRecordUnsure)
    await guest.change({
      hasRun: true,
      runningIn: boot,
      isSuspended: false,
      isSaving: undefined,
      receives: null,
      listensAt: "",
      handedTo: null,
    });
}

/** Resolves when the guest has powered off, or its time is over. */
async function pressPowerButton(guest: QemuGuest, control: PowerControl): Promise<void> {
  const { shutdownMs, pressAgainMs, signal } = control;
  let nextPressMs = 0;
  for (let waited = 0; waited < shutdownMs; waited += POLL_MS) {
    if (waited >= nextPressMs) {
      await guest.execute("system_powerdown");
      nextPressMs += pressAgainMs;
    }
    await delay(POLL_MS);
    if ((await guest.state()) !== "running") return;
    signal.throwIfAborted();
  }
}

/** A guest whose memory has arrived a moment ago is `inmigrate` until QEMU has taken it over, and one whose transfer has ended is `finish-migrate` a moment longer. */
async function settledState(guest: QemuGuest, signal: AbortSignal): Promise<RunState> {
  for (let waited = 0; ; waited += POLL_MS) {
    const state = await guest.state();
    const isSettling = state === FINISHING || (state === "inmigrate" && guest.record.receives === "memory");
    if (!isSettling || waited >= TAKE_OVER_MS) return state;
    signal.throwIfAborted();
    await delay(POLL_MS);
  }
}
