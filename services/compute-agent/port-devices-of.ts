import type { GuestPinning } from "../../core/pinning/guest-pinning.ts";
import { portFunctions } from "../../core/pinning/host-device.ts";
import type { PortDevices } from "../../proto/gen/berth/agent.ts";
import type { GuestName } from "./journal.ts";

/**
 * The functions of the host that connect a guest's direct ports, for the conductor that tells Neutron of them. Undefined for a guest without direct ports, and for
 * one whose record cannot be read now: its conductor goes on without them.
 */
export function portDevicesOf(
  guest: GuestName,
  pinningOf: (guest: GuestName) => GuestPinning | null,
): PortDevices | undefined {
  const devices = portFunctions(pinningIfReadable(guest, pinningOf)?.devices);
  if (devices.length === 0) return undefined;
  return {
    devices: devices.map(({ address: pciSlot, port: { portId, vendorInfo = "", physicalNetwork = "" } }) => ({
      ...{ portId, pciSlot, pciVendorInfo: vendorInfo, physicalNetwork },
    })),
  };
}

function pinningIfReadable(
  guest: GuestName,
  pinningOf: (guest: GuestName) => GuestPinning | null,
): GuestPinning | null {
  try {
    return pinningOf(guest);
  } catch {
    return null;
  }
}
