import { isDeepStrictEqual } from "node:util";
import { hostDeviceId } from "../../../adapters/qemu/host-devices.ts";
import {
  type NamedInterface,
  plugInterface,
  type ReleaseControl,
  unplugDevice,
  unplugInterface,
} from "../../../adapters/qemu/interface-plugs.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { INTERFACE_SLOTS, type UserNetwork, type VirtualMachine } from "../../../adapters/qemu/virtual-machine.ts";
import { DIRECT_VNIC, readConnection } from "../../../core/pinning/direct-ports.ts";
import { deviceName, type HostDevice, type PortFunction, portFunctions } from "../../../core/pinning/host-device.ts";
import type { GuestInterface } from "../../../proto/gen/berth/shared.ts";
import { macOf } from "../../../runtime/mac-of.ts";
import type { GuestFunctions } from "./guest-functions.ts";
import { mayChangeDevices } from "./guest-volumes.ts";

/**
 * Gives the guest these interfaces and no others. The record names an interface before QEMU gets it, and until QEMU has released it, so that an agent that
 * dies in between leaves none that its next process does not know of. It says before the guest is asked to release one, so that the next process does not plug it again. `bridge` is that of further interfaces; null for QEMU's own network.
 */
export async function changeInterfaces(
  guest: QemuGuest,
  wanted: readonly GuestInterface[],
  control: InterfaceControl,
): Promise<void> {
  const present = namedInterfaces(guest.record.machine).map(staying);
  const emulated = await followPorts(guest, wanted, control);
  const desired = emulated.map((one) => present.find((has) => isOfPort(has, one)) ?? interfaceOf(one, control.bridge));
  await give(guest, desired, control);
}

/**
 * Gives the guest those of these interfaces that it lacks, as `changeInterfaces` does, and takes none from it: also those stay that it was asked to release. All for which it
 * has a slot are tried; then it rejects with the reason why another one has none. Virtual functions come only with a new guest.
 */
export async function addInterfaces(
  guest: QemuGuest,
  wanted: readonly GuestInterface[],
  { bridge, signal }: Pick<InterfaceControl, "bridge" | "signal">,
): Promise<void> {
  const { machine, pinning } = guest.record;
  const direct = new Set(portFunctions(pinning?.devices).map(({ port }) => port.portId));
  const present = namedInterfaces(machine).map(staying);
  const lacking = wanted
    .filter(({ portId, vif }) => !direct.has(portId) && vif?.vnicType !== DIRECT_VNIC)
    .filter((one) => !present.some((has) => isOfPort(has, one)))
    .map((one) => interfaceOf(one, bridge));
  const reasonOf = (one: NamedInterface) => whyUnfit(machine, one);
  await give(guest, [...present, ...lacking.filter((one) => reasonOf(one) === null)], { signal });
  const unfit = lacking.find((one) => reasonOf(one) !== null);
  if (unfit !== undefined) throw new QemuError("state", reasonOf(unfit) ?? "");
}

/** Gives the guest these interfaces and no others. Those that it has already are as in its record. */
async function give(guest: QemuGuest, desired: readonly NamedInterface[], control: ReleaseControl): Promise<void> {
  const { machine, receives, isSuspended } = guest.record;
  const recorded = namedInterfaces(machine);
  const present = recorded.map((one) => desired.find(({ id }) => id === one.id) ?? staying(one));
  const added = desired.filter((one) => !present.includes(one));
  const removed = present.filter((one) => !desired.includes(one));
  const isSame = added.length === 0 && removed.length === 0 && recorded.every(({ isLeaving }) => isLeaving !== true);
  // Such a guest has the same interfaces as the one from which its memory comes.
  if (isSame && (isSuspended || receives === "memory")) return;
  const record = (interfaces: readonly NamedInterface[]) =>
    guest.change({ machine: { ...guest.record.machine, interfaces } });
  if (!(await mayChangeDevices(guest, "interfaces"))) return isSame ? undefined : record(desired);
  for (const one of added) {
    const reason = whyUnfit(machine, one);
    if (reason !== null) throw new QemuError("state", reason);
  }
  let left: readonly NamedInterface[] = present;
  for (const one of removed) {
    await record(left.map((other) => (other === one ? { ...one, isLeaving: true } : other)));
    try {
      await unplugInterface(guest, one.id, control);
    } catch (error) {
      // The caller hears that the guest keeps the interface, and why. Only an agent that ends in the middle leaves the mark, and a record that cannot be written now: the next
      // order corrects it.
      await record(left).catch(() => undefined);
      throw error;
    }
    left = left.filter((other) => other !== one);
    await record(left);
  }
  for (const one of desired) {
    control.signal.throwIfAborted();
    const before = left;
    if (!left.includes(one)) {
      left = [...left, one];
      await record(left);
    }
    try {
      await plugInterface(guest, machine, one);
    } catch (error) {
      // If QEMU cannot be asked now, the record keeps the interface, which the guest may have.
      if (error instanceof QemuError) await record(before).catch(() => undefined);
      throw error;
    }
  }
  if (!isSame) await record(desired);
  await guest.serveMetadata();
}

export interface InterfaceControl extends ReleaseControl {
  readonly bridge: string | null;
  readonly functions: GuestFunctions;
}

/**
 * Follows the ports that are connected by virtual functions of the host: records how they are connected from the guest's next start on, and gives back the
 * functions of those that are no longer wanted. Returns the other ports.
 */
async function followPorts(
  guest: QemuGuest,
  wanted: readonly GuestInterface[],
  control: InterfaceControl,
): Promise<readonly GuestInterface[]> {
  const { pinning } = guest.record;
  const direct = portFunctions(pinning?.devices);
  const isDirect = new Set(direct.map(({ port }) => port.portId));
  const followed = followedPorts(guest, wanted);
  if (pinning === undefined || direct.length === 0) return wanted;
  const devices: readonly HostDevice[] = (pinning.devices ?? []).map((device) =>
    device.kind === "pci" && device.port !== undefined ? (followed.get(device.port.portId) ?? device) : device,
  );
  if (!isDeepStrictEqual(devices, pinning.devices)) await guest.change({ pinning: { ...pinning, devices } });
  for (const device of direct.filter(({ port }) => wanted.every(({ portId }) => portId !== port.portId)))
    await giveBack(guest, device, control);
  return wanted.filter(({ portId }) => !isDirect.has(portId));
}

/**
 * The guest's functions as their ports are connected now, by the port. Throws for ports that cannot be connected: a direct one for which the guest has no
 * function, and one that Neutron binds in another way. A guest that was built without functions keeps the ordinary interface that it has for its direct port.
 */
export function followedPorts(
  { record }: Pick<QemuGuest, "record">,
  wanted: readonly GuestInterface[],
): ReadonlyMap<string, PortFunction> {
  const direct = portFunctions(record.pinning?.devices);
  const isDirect = new Set(direct.map(({ port }) => port.portId));
  const present = namedInterfaces(record.machine);
  const stranger = wanted.find(
    (one) =>
      one.vif?.vnicType === DIRECT_VNIC && !isDirect.has(one.portId) && !present.some((has) => isOfPort(has, one)),
  );
  if (stranger !== undefined)
    throw new QemuError(
      "state",
      `the guest has no virtual function for port ${stranger.portId}, which has the VNIC type ${DIRECT_VNIC}: create a server with the port`,
    );
  return new Map(direct.map((device) => [device.port.portId, asConnected(device, wanted)]));
}

/** The device as the port's present connection has it. What is not told now stays as it is. */
function asConnected(device: PortFunction, wanted: readonly GuestInterface[]): PortFunction {
  const one = wanted.find(({ portId }) => portId === device.port.portId);
  if (one === undefined) return device;
  const read = readConnection(one);
  if (read.kind === "refused") throw new QemuError("state", read.reason);
  const { macAddress: mac = device.port.mac } = one;
  return { ...device, port: { ...device.port, mac, connection: read.connection ?? device.port.connection } };
}

/** The record names the function until the guest has released it and the card has forgotten its port, so that no other guest gets it before. */
async function giveBack(guest: QemuGuest, device: PortFunction, control: InterfaceControl): Promise<void> {
  const { pinning } = guest.record;
  const devices = pinning?.devices ?? [];
  if (pinning === undefined) return;
  if (await mayChangeDevices(guest, "interfaces")) await unplugDevice(guest, hostDeviceId(devices, device), control);
  await control.functions.release(guest, [device]);
  const left = devices.filter((one) => deviceName(one) !== device.address);
  await guest.change({ pinning: { ...pinning, devices: left } });
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

/**
 * Gives the machine the metadata address, and slots for interfaces with its interfaces in them, if it lacks them. It also has those that the guest was asked to release, since nobody
 * has said that it did so, and its server still has their ports. The guest must have no QEMU, and no saved memory.
 */
export async function ensureInterfaceSlots(guest: QemuGuest): Promise<void> {
  const areStaying = guest.record.machine.interfaces.every(({ isLeaving }) => isLeaving !== true);
  if (!areStaying) {
    const interfaces = namedInterfaces(guest.record.machine).map(staying);
    await guest.change({ machine: { ...guest.record.machine, interfaces } });
  }
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

const staying = ({ isLeaving: _, ...one }: NamedInterface): NamedInterface => one;

/** Gives the machine the host's present setting. The guest must have no QEMU. */
export async function followUserNetwork(guest: QemuGuest, userNetwork: UserNetwork): Promise<void> {
  const { machine } = guest.record;
  if ((machine.userNetwork ?? "open") !== userNetwork) await guest.change({ machine: { ...machine, userNetwork } });
}

/** The machine's interfaces, also those that the guest was asked to release. */
export const namedInterfaces = ({ interfaces }: VirtualMachine): readonly NamedInterface[] =>
  interfaces.map((one, index) => ({ ...one, id: one.id ?? `net${index}` }));

/** Why the guest cannot get the interface while it runs, or null if it can. It gets it when it is stopped and started. */
export function whyUnfit({ interfaceSlots = 0, bridge }: VirtualMachine, one: NamedInterface): string | null {
  const remedy = "stop the server, attach the interface, and start the server";
  if (interfaceSlots === 0) return `the guest was built without slots for further interfaces: ${remedy}`;
  if (one.slot === undefined || one.slot > interfaceSlots)
    return `all ${interfaceSlots} slots for interfaces of the guest are taken: ${remedy}`;
  if (one.bridge !== null && bridge == null)
    return `the guest was started without the right to use a bridge: ${remedy}`;
  return null;
}
