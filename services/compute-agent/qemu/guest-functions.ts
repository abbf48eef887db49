import { readFileSync } from "node:fs";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import { type RunProgram, VirtualFunctions } from "../../../adapters/qemu/virtual-functions.ts";
import type { GuestPinning } from "../../../core/pinning/guest-pinning.ts";
import { deviceName, type HostDevice } from "../../../core/pinning/host-device.ts";
import type { GuestName } from "../journal.ts";
import { foundGuestDirs } from "./guest-dirs.ts";

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
   * guest of the server that runs with a function keeps it as it is.
   */
  release(guest: DeviceGuest, devices?: readonly HostDevice[]): Promise<void>;
  /** Clears them when the QEMU of a guest has ended that keeps its devices. What a card keeps is told to the operator: nobody gets such a function before the guest is destroyed, and then the card is told again. */
  releaseStopped(guest: DeviceGuest): Promise<void>;
}

interface FunctionsOptions {
  /** The root of the files of /sys that describe the host's devices. */
  readonly sysroot: string;
  /** The directory of the guests. */
  readonly instancesPath: string;
  readonly runProgram?: RunProgram | undefined;
  /** Called with the reason why a card keeps the functions of a guest that has stopped. */
  readonly onFunctionsKept?: ((guest: GuestName, error: unknown) => void) | undefined;
}

export function functionsOfGuests({
  sysroot,
  instancesPath,
  runProgram,
  onFunctionsKept,
}: FunctionsOptions): GuestFunctions {
  const functions = new VirtualFunctions(sysroot, runProgram);
  const isUsed = (address: string, except: string): boolean =>
    foundGuestDirs(instancesPath).some(({ dir, record }) => dir !== except && runsWith(dir, record, address));
  const release: GuestFunctions["release"] = ({ dir, record }, devices = record.pinning?.devices) =>
    functions.release({ dir, devices }, (address) => isUsed(address, dir));
  return {
    connect: ({ dir, record }, signal) => functions.connect({ dir, devices: record.pinning?.devices }, signal),
    release,
    releaseStopped: async (guest) => {
      try {
        await release(guest);
      } catch (error) {
        const { host, serverUuid, attemptId } = guest.record;
        onFunctionsKept?.({ host, serverUuid, attemptId }, error);
      }
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
