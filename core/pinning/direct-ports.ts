import type { AllocationRequest, PortVif, ServerSpec } from "../../proto/gen/berth/shared.ts";
import { guestInterfaces } from "../tasks/port-change.ts";
import type { NeedsRefused } from "./guest-needs.ts";
import { type HostDevice, type PortConnection, type PortFunction, portFunctions } from "./host-device.ts";
import type { MachineLayout } from "./machine-layout.ts";

/** Neutron's name for ports that are virtual functions of a network card in the guest. */
export const DIRECT_VNIC = "direct";
/** The resource class of virtual functions of network cards. */
export const VF_CLASS = "SRIOV_NET_VF";
/** How Neutron names the connection of such a function by the card's own switch. */
const CARD_SWITCH = "hw_veb";
const VLAN_MAX = 4_094;

/** A port that needs a virtual function of the card that its claim names. */
export interface DirectPort {
  readonly portId: string;
  readonly mac: string;
  readonly slot: number;
  /** The provider whose virtual function the claim has for the port. */
  readonly provider: string;
  readonly connection: PortConnection | null;
}

type Read<Found> = ({ readonly kind: "read" } & Found) | NeedsRefused;

/** The ports of a server that virtual functions connect: those whose request group asks for one. */
export const directPortIds = ({ portRequests }: Pick<ServerSpec, "portRequests">): ReadonlySet<string> =>
  new Set(portRequests.filter(({ resources }) => (resources[VF_CLASS] ?? 0) > 0).map(({ portId }) => portId));

/**
 * Reads which ports of a server need a virtual function, and of which provider. `macOf` gives the MAC address of a port that names none. Refuses a connection
 * that the host cannot make, and in a server that `isNew` a direct port for which nothing was claimed. An older server may have got an ordinary interface for such
 * a port, which it keeps wherever it moves.
 */
export function directPorts(
  server: Pick<ServerSpec, "ports" | "portRequests">,
  allocation: AllocationRequest | undefined,
  { macOf, isNew }: { readonly macOf: (portId: string) => string; readonly isNew: boolean },
): Read<{ readonly ports: readonly DirectPort[] }> {
  const asking = directPortIds(server);
  const ports: DirectPort[] = [];
  for (const { portId, macAddress = macOf(portId), slot, vif } of guestInterfaces(server.ports).interfaces) {
    if (!asking.has(portId)) {
      if (isNew && vif?.vnicType === DIRECT_VNIC) return refused(unclaimed(portId));
      continue;
    }
    const request = server.portRequests.find((one) => one.portId === portId && one.resources[VF_CLASS] !== undefined);
    const provider = allocation?.mappings[request?.suffix ?? ""] ?? request?.provider ?? "";
    if (provider === "") return refused(unclaimed(portId));
    const read = readConnection({ portId, vif });
    if (read.kind === "refused") return read;
    ports.push({ portId, mac: macAddress, slot, provider, connection: read.connection });
  }
  return { kind: "read", ports };
}

/** Reads how Neutron connects a direct port on the host. The connection is null if Neutron has not said it. */
export function readConnection({
  portId,
  vif,
}: {
  readonly portId: string;
  readonly vif?: PortVif | undefined;
}): Read<{ readonly connection: PortConnection | null }> {
  if (vif === undefined) return { kind: "read", connection: null };
  if (vif.type !== CARD_SWITCH)
    return refused(
      `port ${portId} is bound as ${vif.type}, and this host connects virtual functions as ${CARD_SWITCH} alone: let Neutron's mechanism driver sriovnicswitch bind it`,
    );
  const { vlan: told = 0 } = fieldsOf(vif.details);
  const vlan = Number(told);
  if (!Number.isInteger(vlan) || vlan < 0 || vlan > VLAN_MAX)
    return refused(`Neutron gives port ${portId} the VLAN ${JSON.stringify(told)}; 0 to ${VLAN_MAX} are allowed`);
  const { trusted } = fieldsOf(vif.profile);
  return {
    kind: "read",
    connection: { vlan, isTrusted: trusted === true || /^(true|1|yes|on)$/i.test(String(trusted)) },
  };
}

/**
 * Gives each port one of the functions that were chosen for the guest, of the provider that its claim names. A port keeps the function that it has in another
 * guest of its server. Refuses when the claim has fewer functions than ports.
 */
export function connectPorts(
  devices: readonly HostDevice[],
  ports: readonly DirectPort[],
  { layout, own }: { readonly layout: MachineLayout | null; readonly own: readonly HostDevice[] },
): Read<{ readonly devices: readonly HostDevice[] }> {
  const connected = new Map<string, PortFunction>();
  const kept = (portId: string) => portFunctions(own).find(({ port }) => port.portId === portId)?.address;
  // A port that has no function yet takes none that another one has.
  const sorted = [...ports].sort((a, b) => Number(kept(a.portId) === undefined) - Number(kept(b.portId) === undefined));
  for (const { provider, ...port } of sorted) {
    const place = layout?.devices?.find((one) => one.provider === provider && one.resourceClass === VF_CLASS);
    const free = devices
      .filter((device) => device.kind === "pci")
      .map(({ address }) => address)
      .filter((address) => place?.addresses.includes(address) === true && !connected.has(address));
    const before = kept(port.portId);
    const address = free.find((one) => one === before) ?? free[0];
    if (address === undefined) return refused(unclaimed(port.portId));
    const { vendorInfo, physicalNetwork } = place ?? {};
    connected.set(address, { kind: "pci", address, port: { ...port, vendorInfo, physicalNetwork } });
  }
  const place = (device: HostDevice): HostDevice =>
    device.kind === "pci" ? (connected.get(device.address) ?? device) : device;
  return { kind: "read", devices: devices.map(place) };
}

function fieldsOf(json: string): Readonly<Record<string, unknown>> {
  try {
    const read: unknown = json === "" ? {} : JSON.parse(json);
    return typeof read === "object" && read !== null ? (read as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

const unclaimed = (portId: string): string =>
  `port ${portId} has the VNIC type ${DIRECT_VNIC}, and the server's claim has no virtual function (${VF_CLASS}) for it: the port must belong to the server when the server is created`;

const refused = (reason: string): NeedsRefused => ({ kind: "refused", reason });
