import { FunctionNotes } from "../../../adapters/qemu/function-notes.ts";
import { type SeenQemu, seenQemus } from "../../../adapters/qemu/running-qemu.ts";
import { type IsUsed, type RunProgram, VirtualFunctions } from "../../../adapters/qemu/virtual-functions.ts";
import type { GuestPinning } from "../../../core/pinning/guest-pinning.ts";
import { deviceName, type HostDevice } from "../../../core/pinning/host-device.ts";
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
  /** Looks at the QEMUs that may use a function: all of the machine if absent. */
  readonly lookAtQemus?: (() => Promise<readonly SeenQemu[]>) | undefined;
  /** The file in which functions are noted that cards were told of. Without it the notes end with the process. */
  readonly functionNotes?: string | undefined;
  readonly clock: Clock;
  /** Called when the notes of functions cannot be written, with the file and the reason, and not again before they could. */
  readonly onNotesUnwritten?: ((path: string, error: unknown) => void) | undefined;
  /** Called with the reason why a card keeps the functions of a guest that has stopped, or that is gone: then only its directory is known. */
  readonly onFunctionsKept?: ((guest: GuestName | { readonly dir: string }, error: unknown) => void) | undefined;
}

export function functionsOfGuests({
  sysroot,
  dirs,
  runProgram,
  lookAtQemus = seenQemus,
  functionNotes,
  clock,
  onFunctionsKept,
  onNotesUnwritten,
}: FunctionsOptions): GuestFunctions {
  const notes = new FunctionNotes({ path: functionNotes ?? null, boot: bootId(), onUnwritten: onNotesUnwritten });
  const functions = new VirtualFunctions(sysroot, runProgram, notes);
  const look = async (): Promise<Look> => ({ guests: await dirs.found(), qemus: await lookAtQemus() });
  const isUsedExceptBy =
    (except: string): IsUsed =>
    async (address, noted) =>
      isInUse(await look(), { address, noted, except });
  const release: GuestFunctions["release"] = ({ dir, record }, devices) => {
    const isUsed = isUsedExceptBy(dir);
    return devices === undefined
      ? functions.releaseAll({ dir, devices: record?.pinning?.devices }, isUsed)
      : functions.release({ dir, devices }, isUsed);
  };
  /** The guests whose functions a card keeps, as the operator was told. */
  const told = new Set<string>();
  const clearLeft = async (): Promise<void> => {
    notes.retry();
    // While nobody knows which guests there are, no card is told anything. A guest that starts after the look takes its functions out of those that are left.
    const seen = functions.hasLeft ? await look() : null;
    const kept =
      seen === null
        ? []
        : await functions.clearLeft((address, noted) => isInUse(seen, { address, noted, except: null }));
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
      const { guests, qemus } = await look().catch((): Look => ({ guests: [], qemus: [] }));
      const running = new Set(qemus.map(({ dir }) => dir));
      for (const { dir, record } of guests)
        if (running.has(dir)) functions.remember({ dir, devices: record?.pinning?.devices });
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

/** The guests of the directory and the QEMUs of the machine, as they were seen at about the same moment. */
interface Look {
  readonly guests: readonly ReleasedGuest[];
  readonly qemus: readonly SeenQemu[];
}

/**
 * Whether a QEMU has a PCI function, other than that of the guest in the directory `except`. A guest's record says which functions it has. For all other QEMUs their arguments do: those of
 * guests whose records cannot be read or whose directories were removed, and those that others than this agent have started. The record of the guest that is noted may be an older one, so its
 * arguments count as well.
 */
function isInUse(
  { guests, qemus }: Look,
  {
    address,
    noted,
    except,
  }: { readonly address: string; readonly noted: string | undefined; readonly except: string | null },
): boolean {
  const records = new Map(guests.map(({ dir, record }) => [dir as string | null, record]));
  return qemus.some(({ dir, commandLine }) => {
    if (dir !== null && dir === except) return false;
    const record = records.get(dir) ?? null;
    const devices = record?.pinning?.devices ?? [];
    if (devices.some((device) => deviceName(device) === address)) return true;
    return (record === null || dir === noted) && commandLine.includes(address);
  });
}
