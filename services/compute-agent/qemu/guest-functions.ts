import { readFileSync } from "node:fs";
import { FunctionNotes } from "../../../adapters/qemu/function-notes.ts";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import { type IsUsed, type RunProgram, VirtualFunctions } from "../../../adapters/qemu/virtual-functions.ts";
import type { GuestPinning } from "../../../core/pinning/guest-pinning.ts";
import { deviceName, type HostDevice, portFunctions } from "../../../core/pinning/host-device.ts";
import { bootId } from "../../../runtime/boot-id.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Ticker } from "../../../runtime/ticker.ts";
import type { GuestName } from "../journal.ts";
import type { GuestDirs } from "./guest-dirs.ts";

/** How long a card that keeps the settings of a function is left alone before it is told again. */
const CLEAR_AGAIN_MS = 60_000;

interface DeviceRecord extends GuestName {
  readonly pinning?: GuestPinning | undefined;
}

/** A guest on disk, as far as its devices matter. */
export interface DeviceGuest {
  readonly dir: string;
  readonly record: DeviceRecord;
}

/** What the host's network cards know of the virtual functions of guests: the MAC address and the VLAN of the port that each connects. */
export interface GuestFunctions {
  /** Sets them, before the guest runs. Rejects with a reason if they cannot be set or are unknown. */
  connect(guest: DeviceGuest, signal: AbortSignal): Promise<void>;
  /**
   * Clears them when the guest's QEMU has ended, and the guest is about to lose all its devices, or only some. Rejects with a reason if a card keeps them. Another
   * guest of the server that runs with a function keeps it as it is. A guest without a record that can be read has the functions that were noted when they were set.
   */
  release(guest: ReleasedGuest, devices?: readonly HostDevice[]): Promise<void>;
  /** Clears them when the QEMU of a guest has ended that keeps its devices. What a card keeps is told to the operator: nobody gets such a function before the guest is destroyed, and then the card is told again. */
  releaseStopped(guest: DeviceGuest): Promise<void>;
  /** Clears the functions that an earlier process has left, and from now on repeats this for those that a card keeps. A function that a guest uses is left alone. */
  start(): Promise<void>;
  close(): void;
}

interface ReleasedGuest {
  readonly dir: string;
  readonly record: DeviceRecord | null;
}

/** What a driver needs to set and clear its guests' functions. */
export interface FunctionsOptions {
  /** The root of the files of /sys and /dev that describe the host's devices. */
  readonly sysroot: string;
  /** The directory of the guests. */
  readonly dirs: Pick<GuestDirs, "found">;
  /** Runs the programs that configure the host's network cards. The host's own if absent. */
  readonly runProgram?: RunProgram | undefined;
  /** The file in which functions are noted that cards were told of. Without it the notes end with the process. */
  readonly functionNotes?: string | undefined;
  readonly clock: Clock;
  /** Called with the reason why a card keeps the functions of a guest that has stopped, or that is gone: then only its directory is known. */
  readonly onFunctionsKept?: ((guest: GuestName | { readonly dir: string }, error: unknown) => void) | undefined;
}

export function functionsOfGuests({
  sysroot,
  dirs,
  runProgram,
  functionNotes,
  clock,
  onFunctionsKept,
}: FunctionsOptions): GuestFunctions {
  const notes = new FunctionNotes({ path: functionNotes ?? null, boot: bootId() });
  const functions = new VirtualFunctions(sysroot, runProgram, notes);
  const isUsedExceptBy =
    (except: string | null): IsUsed =>
    async (address, noted) => {
      // The directory of the guest that is noted may have been removed under its QEMU, or its record may be an older one.
      const holder = noted === undefined ? [] : [{ dir: noted, record: null }];
      const guests = [...(await dirs.found()), ...holder];
      return guests.some(({ dir, record }) => dir !== except && runsWith(dir, record, address));
    };
  const release: GuestFunctions["release"] = ({ dir, record }, devices) => {
    const isUsed = isUsedExceptBy(dir);
    return devices === undefined
      ? functions.releaseAll({ dir, devices: record?.pinning?.devices }, isUsed)
      : functions.release({ dir, devices }, isUsed);
  };
  /** The guests whose functions a card keeps, as the operator was told. */
  const told = new Set<string>();
  const clearLeft = async (): Promise<void> => {
    // While nobody knows which guests there are, no card is told anything.
    await dirs.found();
    const kept = await functions.clearLeft(isUsedExceptBy(null));
    for (const { dir, error } of kept) if (!told.has(dir)) onFunctionsKept?.({ dir }, error);
    told.clear();
    for (const { dir } of kept) told.add(dir);
  };
  let isClosed = false;
  const ticker = new Ticker({ clock, pauseMs: CLEAR_AGAIN_MS, work: clearLeft, onError: () => undefined });
  return {
    connect: ({ dir, record }, signal) =>
      functions.connect({ dir, devices: record.pinning?.devices }, signal, isUsedExceptBy(dir)),
    release,
    releaseStopped: async (guest) => {
      try {
        await release(guest);
      } catch (error) {
        const { host, serverUuid, attemptId } = guest.record;
        told.add(guest.dir);
        onFunctionsKept?.({ host, serverUuid, attemptId }, error);
      }
    },
    start: async () => {
      for (const { dir, record } of await dirs.found().catch(() => [])) {
        const devices = portFunctions(record?.pinning?.devices);
        const [first] = devices;
        if (first !== undefined && runsWith(dir, record, first.address)) functions.remember({ dir, devices });
      }
      // The look at the guests may have waited for their storage for long.
      if (isClosed) return;
      ticker.start();
      ticker.hurry(0);
    },
    close: () => {
      isClosed = true;
      void ticker.stop();
    },
  };
}

/**
 * Whether a guest runs with a PCI function. The QEMU of a guest whose record cannot be read says by its arguments which functions it has. The record is looked at
 * first, because all processes of the host are looked through for a guest that has stopped.
 */
function runsWith(dir: string, record: DeviceRecord | null, address: string): boolean {
  const devices = record?.pinning?.devices ?? [];
  if (record !== null && devices.every((device) => deviceName(device) !== address)) return false;
  const running = findRunningQemu(dir);
  if (running === null) return false;
  return record !== null || readFileSync(`/proc/${running.pid}/cmdline`, "latin1").includes(address);
}
