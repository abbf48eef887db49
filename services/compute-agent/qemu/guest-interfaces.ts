import { type NamedInterface, plugInterface, unplugInterface } from "../../../adapters/qemu/interface-plugs.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { INTERFACE_SLOTS, type UserNetwork, type VirtualMachine } from "../../../adapters/qemu/virtual-machine.ts";
import type { GuestInterface } from "../../../proto/gen/berth/shared.ts";
import { macOf } from "../../../runtime/mac-of.ts";
import { mayChangeDevices } from "./guest-volumes.ts";

/**
 * Gives the guest these interfaces and no others. The record names an interface before QEMU gets it, and until QEMU has released it, so that an agent that
 * dies in between leaves none that its next process does not know of. `bridge` is that of further interfaces; null for QEMU's own network.
 */
export async function changeInterfaces(
  guest: QemuGuest,
  wanted: readonly GuestInterface[],
  { bridge, signal }: { readonly bridge: string | null; readonly signal: AbortSignal },
): Promise<void> {
  const { machine, receives, isSuspended } = guest.record;
  const present = namedInterfaces(machine);
  const desired = wanted.map((one) => present.find((has) => isOfPort(has, one)) ?? interfaceOf(one, bridge));
  const added = desired.filter((one) => !present.includes(one));
  const removed = present.filter((one) => !desired.includes(one));
  const isSame = added.length === 0 && removed.length === 0;
  // Such a guest has the same interfaces as the one from which its memory comes.
  if (isSame && (isSuspended || receives === "memory")) return;
  const record = (interfaces: readonly NamedInterface[]) =>
    guest.change({ machine: { ...guest.record.machine, interfaces } });
  if (!(await mayChangeDevices(guest, "interfaces"))) return isSame ? undefined : record(desired);
  for (const one of added) refuseUnfit(machine, one);
  let left: readonly NamedInterface[] = present;
  for (const one of removed) {
    await unplugInterface(guest, one.id, signal);
    left = left.filter((other) => other !== one);
    await record(left);
  }
  for (const one of desired) {
    signal.throwIfAborted();
    const before = left;
    if (!left.includes(one)) {
      left = [...left, one];
      await record(left);
    }
    try {
      await plugInterface(guest, machine, one);
    } catch (error) {
      // If QEMU cannot be asked now, the record keeps the interface, which the guest may have.
      if (error instanceof QemuError) await record(before);
      throw error;
    }
  }
  if (!isSame) await record(desired);
  await guest.serveMetadata();
}

/** The interface of a port. */
export function interfaceOf(one: GuestInterface, bridge: string | null): NamedInterface {
  const { portId, slot } = one;
  return { mac: macOfInterface(one), bridge, slot, portId, id: `net-${portId}` };
}

/** Ports of different networks may have the same MAC address. */
const isOfPort = ({ portId, mac }: NamedInterface, one: GuestInterface): boolean =>
  portId === undefined ? mac === macOfInterface(one) : portId === one.portId;

const macOfInterface = ({ portId, macAddress }: GuestInterface): string => macAddress ?? macOf(portId);

/** Gives the machine the metadata address, and slots for interfaces with its interfaces in them, if it lacks them. The guest must have no QEMU, and no saved memory. */
export async function ensureInterfaceSlots(guest: QemuGuest): Promise<void> {
  const { machine } = guest.record;
  if (machine.hasMetadataAddress !== true) await guest.change({ machine: { ...machine, hasMetadataAddress: true } });
  if (machine.interfaceSlots !== undefined) return;
  const interfaces = namedInterfaces(machine).map((one, index) => ({ ...one, slot: one.slot ?? index + 1 }));
  const bridge = interfaces.find((one) => one.bridge !== null)?.bridge ?? null;
  await guest.change({
    machine: {
      ...guest.record.machine,
      interfaces,
      interfaceSlots: INTERFACE_SLOTS,
      ...(bridge !== null && { bridge }),
    },
  });
}

/** Gives the machine the host's present setting. The guest must have no QEMU. */
export async function followUserNetwork(guest: QemuGuest, userNetwork: UserNetwork): Promise<void> {
  const { machine } = guest.record;
  if ((machine.userNetwork ?? "open") !== userNetwork) await guest.change({ machine: { ...machine, userNetwork } });
}

const namedInterfaces = ({ interfaces }: VirtualMachine): readonly NamedInterface[] =>
  interfaces.map((one, index) => ({ ...one, id: one.id ?? `net${index}` }));

/** Refuses an interface that a guest cannot get while it runs. It gets it when it is stopped and started. */
function refuseUnfit({ interfaceSlots = 0, bridge }: VirtualMachine, one: NamedInterface): void {
  const remedy = "stop the server, attach the interface, and start the server";
  if (interfaceSlots === 0)
    throw new QemuError("state", `the guest was built without slots for further interfaces: ${remedy}`);
  if (one.slot === undefined || one.slot > interfaceSlots)
    throw new QemuError("state", `all ${interfaceSlots} slots for interfaces of the guest are taken: ${remedy}`);
  if (one.bridge !== null && bridge == null)
    throw new QemuError("state", `the guest was started without the right to use a bridge: ${remedy}`);
}
