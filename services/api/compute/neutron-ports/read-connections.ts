import { DIRECT_VNIC } from "../../../../core/pinning/direct-ports.ts";
import { type NeutronNetwork, type NeutronPort, OWN_NAME } from "../../../../core/stores/networking.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import { type KnownCall, mayDo } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, conflict, Fault } from "../../http/fault.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";

/** A connection of a server to a network: by an existing port, or by one that is made for it. */
export interface Connection {
  readonly network: NeutronNetwork;
  /** Null for a port that is made. */
  readonly port: NeutronPort | null;
  /** The address that the made port must have, or null for any. */
  readonly address: string | null;
  readonly tag: string;
  /** The physical network whose cards can connect a direct port; null for any other port. */
  readonly physicalNetwork: string | null;
}

/** The networks in a body, as its schema has checked them. */
export type AskedNetworks =
  | "auto"
  | "none"
  | readonly {
      readonly uuid?: string;
      readonly port?: string | null;
      readonly fixed_ip?: string;
      readonly tag?: string;
    }[];

interface ConnectionsFrom {
  readonly call: KnownCall;
  /** The project of the servers, which an admin's call may do for another project. Its networks and ports count. */
  readonly projectId: string;
  readonly servers: number;
  /** Makes the errors for things that do not exist, that cannot be told apart, or that something else has. */
  readonly faults: ConnectionFaults;
}

export interface ConnectionFaults {
  readonly missing: (message: string) => Fault;
  readonly ambiguous: (message: string) => Fault;
  readonly taken: (message: string) => Fault;
}

interface AskedConnection {
  readonly networkId: string | null;
  readonly portId: string | null;
  readonly address: string | null;
  readonly tag: string;
}

/**
 * Reads the networks in a body and checks them in Neutron, in the caller's name. Refuses networks and ports that the caller may not see or use,
 * ports in use, addresses in use, and a choice of several networks where none is named. Nothing is changed.
 *
 * Source: `validate_networks` in nova/network/neutron.py, and the statuses in nova/api/openstack/compute/servers.py.
 */
export function readConnections(
  deps: NeutronDeps,
  networks: AskedNetworks | undefined,
  from: ConnectionsFrom,
): Promise<readonly Connection[]> {
  return askNeighbour(async () => {
    if (networks === "none") return [];
    if (networks === undefined || networks === "auto" || networks.length === 0)
      return onlyNetwork(deps, from, networks === "auto");
    const asked = networks.map((network) => readNetwork(network, from.servers));
    const ids = asked.flatMap(({ portId }) => portId ?? []);
    const twice = ids.find((id, at) => ids.indexOf(id) !== at);
    if (twice !== undefined)
      throw badRequest(`Port ID '${twice}' was specified twice: you cannot attach a port multiple times.`);
    const ports = new Map<string, NeutronPort>();
    for (const id of ids) ports.set(id, await findPort(deps, from, id));
    const networkIds = asked.map(({ networkId, portId }) => networkId ?? ports.get(portId ?? "")?.networkId ?? "");
    const known = await findNetworks(deps, from, asked, networkIds);
    for (const { networkId, address } of asked)
      if (networkId !== null && address !== null) await refuseTakenAddress(deps, from, networkId, address);
    const physical = await physicalNetworks(deps, [...ports.values()]);
    return asked.map(({ portId, address, tag }, at) => {
      const network = known.get(networkIds[at] ?? "") ?? unseen(networkIds[at] ?? "");
      const port = portId === null ? null : (ports.get(portId) ?? null);
      return { network, port, address, tag, physicalNetwork: physical.get(portId ?? "") ?? null };
    });
  });
}

/** Returns the network of a server whose body names none. Without `auto`, a server of a project without networks gets none. */
async function onlyNetwork(
  deps: NeutronDeps,
  { call, projectId, faults }: ConnectionsFrom,
  isAuto: boolean,
): Promise<readonly Connection[]> {
  const { networking } = deps;
  const [own, shared] = await Promise.all([
    networking.networks({ projectId, isShared: false }, askedBy(deps, call)),
    networking.networks({ isShared: true }, askedBy(deps, call)),
  ]);
  const found = [...own, ...shared];
  if (found.length > 1)
    throw faults.ambiguous("Multiple possible networks found, use a Network ID to be more specific.");
  let [network = null] = found;
  if (network === null && isAuto) {
    network = await networking.autoNetwork(projectId, askedBy(deps, call));
    if (network === null) throw badRequest(`Unable to automatically allocate a network for project ${projectId}`);
  }
  if (network === null) return [];
  refuseUnusable(network, call);
  return [{ network, port: null, address: null, tag: "", physicalNetwork: null }];
}

function readNetwork(
  { port, uuid, fixed_ip, tag = "" }: Exclude<AskedNetworks, string>[number],
  servers: number,
): AskedConnection {
  const address = fixed_ip ?? null;
  const isForMany = servers > 1;
  if (port != null) {
    if (address !== null)
      throw badRequest(
        `Specified Fixed IP '${address}' cannot be used with port '${port}': the two cannot be specified together.`,
      );
    if (isForMany)
      throw badRequest(
        "Failed to launch instances: Unable to launch multiple instances with a single configured port ID. Please launch your instance one by one with different ports.",
      );
    return { networkId: null, portId: storedSpelling(port), address, tag };
  }
  if (uuid === undefined) throw badRequest("Bad network format: missing 'uuid'");
  if (address !== null && isForMany)
    throw badRequest(
      "Failed to launch instances: Invalid launch request: max_count cannot be greater than 1 if an fixed_ip is specified.",
    );
  return { networkId: storedSpelling(uuid), portId: null, address, tag };
}

/** Finds a port that a server of the project may get. Throws the `Fault` of a port that it may not get. */
async function findPort(
  deps: NeutronDeps,
  { call, projectId, faults }: ConnectionsFrom,
  id: string,
): Promise<NeutronPort> {
  const { networking } = deps;
  const [seen] = await networking.ports({ id }, askedBy(deps, call));
  if (seen === undefined || !isOf(seen, call)) throw faults.missing(`Port id ${id} could not be found.`);
  if (seen.projectId !== projectId) throw badRequest(`Port ${id} is not usable: it belongs to another project.`);
  if (seen.deviceId !== "") throw conflict(`Port ${id} is still in use.`);
  if (seen.ipAllocation === "immediate" && seen.fixedAddresses.length === 0)
    throw badRequest(`Port ${id} requires a FixedIP in order to be used.`);
  // Only this service sees the port's binding and its resource request.
  const [port = seen] = await networking.ports({ id }, OWN_NAME);
  if (!VNIC_TYPES.includes(port.vnicType))
    throw badRequest(
      `Port ${id} has the VNIC type ${port.vnicType}, with which Berth cannot connect servers: make a port with one of ${VNIC_TYPES.join(", ")}.`,
    );
  if (port.vnicType === DIRECT_VNIC && port.groups.length > 0)
    throw badRequest(
      `Port ${id} has the VNIC type ${DIRECT_VNIC} and requests resources by its QoS policy, which Berth does not claim together: use a port without one of them.`,
    );
  return port;
}

/** The VNIC types with which hosts can connect servers. Bare metal nodes are connected by Neutron alone. */
const VNIC_TYPES: readonly string[] = ["normal", DIRECT_VNIC, "baremetal"];

/** The physical networks of the direct ports, by port. Only this service sees them. Refuses a direct port on a network that has none. */
async function physicalNetworks(
  { networking }: NeutronDeps,
  ports: readonly NeutronPort[],
): Promise<ReadonlyMap<string, string>> {
  const direct = ports.filter(({ vnicType }) => vnicType === DIRECT_VNIC);
  if (direct.length === 0) return new Map();
  const ids = [...new Set(direct.map(({ networkId }) => networkId))];
  const networks = new Map((await networking.networks({ ids }, OWN_NAME)).map((one) => [one.id, one]));
  const found = direct.map(({ id, networkId }): [string, string] => {
    const { physicalNetwork } = networks.get(networkId) ?? {};
    if (physicalNetwork === undefined)
      throw badRequest(
        `Port ${id} has the VNIC type ${DIRECT_VNIC}, and its network ${networkId} has no physical network: take a port on a flat or VLAN network.`,
      );
    return [id, physicalNetwork];
  });
  return new Map(found);
}

/** Finds the networks by id. Those that the body names must be visible to the caller; a visible port may be on another one. */
async function findNetworks(
  deps: NeutronDeps,
  { call, projectId, faults }: ConnectionsFrom,
  asked: readonly AskedConnection[],
  ids: readonly string[],
): Promise<ReadonlyMap<string, NeutronNetwork>> {
  const found = new Map<string, NeutronNetwork>();
  for (const network of await deps.networking.networks({ ids: [...new Set(ids)] }, askedBy(deps, call)))
    if (isVisible(deps, network, { call, projectId })) found.set(network.id, network);
  const named = asked.flatMap(({ networkId }) => networkId ?? []);
  const lost = [...new Set(named)].filter((id) => !found.has(id));
  if (lost.length > 0) throw faults.missing(`Network ${lost.join(", ")} could not be found.`);
  for (const id of named) {
    const network = found.get(id);
    if (network === undefined) continue;
    if (network.subnetIds.length === 0)
      throw badRequest(`Network ${id} requires a subnet in order to boot instances on.`);
  }
  for (const network of found.values()) refuseUnusable(network, call);
  return found;
}

/** Neutron has judged this already for a caller with a token. */
function isVisible(
  { sendsTokens }: NeutronDeps,
  network: NeutronNetwork,
  { call, projectId }: Pick<ConnectionsFrom, "call" | "projectId">,
): boolean {
  return sendsTokens || network.isShared || isOf(network, call) || network.projectId === projectId;
}

/** Whether the caller may see what belongs to this project. */
const isOf = ({ projectId }: { readonly projectId: string }, { identity }: KnownCall): boolean =>
  identity.isAdmin || identity.projectId === projectId;

function refuseUnusable({ id, isExternal, isShared }: NeutronNetwork, call: KnownCall): void {
  if (isExternal && !isShared && !mayDo(call, "network:attach_external_network"))
    throw new Fault(403, `It is not allowed to create an interface on external network ${id}`);
}

async function refuseTakenAddress(
  deps: NeutronDeps,
  { call, faults }: Pick<ConnectionsFrom, "call" | "faults">,
  networkId: string,
  address: string,
): Promise<void> {
  const { networking } = deps;
  const [holder] = await networking.ports({ networkId, address }, OWN_NAME);
  if (holder === undefined) return;
  // The servers of other projects are not the caller's business. Nova asks in the caller's name only.
  const seen = await networking.ports({ networkId, address }, askedBy(deps, call));
  const shown = seen.find((port) => port.deviceId !== "" && (deps.sendsTokens || isOf(port, call)));
  const where = shown === undefined ? "" : ` on instance ${shown.deviceId}`;
  throw faults.taken(`Fixed IP address ${address} is already in use${where}.`);
}

/** A network that the caller may not see, although it may use a port there. */
const unseen = (id: string): NeutronNetwork => ({
  ...{ id, name: "", projectId: "", isShared: false, isExternal: false, subnetIds: [], hasQosPolicy: false },
});
