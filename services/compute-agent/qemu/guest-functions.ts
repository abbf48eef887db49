import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import type { VirtualFunctions } from "../../../adapters/qemu/virtual-functions.ts";
import type { GuestPinning } from "../../../core/pinning/guest-pinning.ts";
import { deviceName, type HostDevice } from "../../../core/pinning/host-device.ts";

/** A guest on disk, as far as its devices matter. */
export interface DeviceGuest {
  readonly dir: string;
  readonly record: { readonly pinning?: GuestPinning | undefined };
}

/** What the host's network cards know of the virtual functions of guests: the MAC address and the VLAN of the port that each connects. */
export interface GuestFunctions {
  /** Sets them, before the guest runs. Rejects with a reason if they cannot be set or are unknown. */
  connect(guest: DeviceGuest, signal: AbortSignal): Promise<void>;
  /** Clears them when the guest's QEMU has ended, or only those of some devices that the guest has given back. Another guest of the server that runs with a function keeps it as it is. */
  release(guest: DeviceGuest, devices?: readonly HostDevice[]): Promise<void>;
}

/** `guests` finds all guests of the agent. */
export function functionsOfGuests(functions: VirtualFunctions, guests: () => readonly DeviceGuest[]): GuestFunctions {
  const isUsed = (address: string, except: string): boolean =>
    guests().some(({ dir, record }) => {
      const devices = record.pinning?.devices ?? [];
      return dir !== except && devices.some((one) => deviceName(one) === address) && findRunningQemu(dir) !== null;
    });
  return {
    connect: ({ dir, record }, signal) => functions.connect({ dir, devices: record.pinning?.devices }, signal),
    release: ({ dir, record }, devices = record.pinning?.devices) =>
      functions.release({ dir, devices }, (address) => isUsed(address, dir)),
  };
}
