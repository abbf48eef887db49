import type { OpenedNote } from "../../../../core/stores/api/port-note-store.ts";
import {
  type CreatePortsOutcome,
  DEVICE_IDS_MAX,
  type NeutronPort,
  type NewNeutronPort,
  OWN_NAME,
} from "../../../../core/stores/networking.ts";
import { NetworkingError } from "../../../../core/stores/networking-error.ts";
import type { ServerPort, ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, conflict, Fault } from "../../http/fault.ts";
import type { ConnectedServers } from "../../network/connected-servers.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import type { Connection } from "./read-connections.ts";
import { floatingOf } from "./refresh-ports.ts";
import { releasePorts } from "./release-ports.ts";

/**
 * Makes a port in Neutron for each connection of each server, and gives the existing ports to their server. The notes of the servers are open
 * meanwhile, so that the settler finds what is left behind if this process ends before the servers are accepted. A refusal leaves nothing behind.
 */
export async function connectToNeutron(
  deps: NeutronDeps,
  specs: readonly ServerSpec[],
  connections: readonly Connection[],
  call: KnownCall,
  securityGroups: readonly string[] | null,
): Promise<ConnectedServers> {
  if (connections.length === 0) return { specs, settle: async () => {}, undo: async () => {} };
  const keptPorts = connections.flatMap(({ port }) => port?.id ?? []);
  const opened = await deps.notes.openNotes(specs.map(({ uuid }) => ({ serverUuid: uuid, keptPorts })));
  const wanted = specs.flatMap((spec) => newPortsOf(spec, connections, securityGroups));
  const undo = () => giveBack(deps, opened, keptPorts);
  const made = await makePortsInNeutron(deps, wanted, call, undo);
  if (connections.some(({ port, network }) => port === null && network.hasQosPolicy))
    await refuseRequests(deps, specs, made, undo);
  try {
    for (const { port } of connections)
      if (port !== null) await takePort(deps, port, { serverUuid: specs[0]?.uuid ?? "", zone: zoneOf(specs[0]) });
  } catch (error) {
    if (error instanceof Fault && error.status < 500) await undo();
    throw error;
  }
  // A port that a user made may have a floating IP already. If Neutron does not tell, its next event about the server does.
  const floating = await floatingOf(deps.floatingIps, keptPorts).catch(withoutNeutron);
  const fresh = made.values();
  const portsOf = (): ServerPort[] =>
    connections.flatMap(({ port, network, tag }) => {
      const own = port ?? fresh.next().value;
      return own === undefined ? [] : [serverPortOfNeutron(own, network.name, tag, floating.get(own.id))];
    });
  return {
    specs: specs.map((spec) => ({ ...spec, ports: portsOf() })),
    settle: (accepted) => settle(deps, opened, accepted),
    undo,
  };
}

/** Returns a port as its server keeps it. */
export function serverPortOfNeutron(
  port: NeutronPort,
  networkName: string,
  tag: string,
  floatingAddresses: ServerPort["floatingAddresses"] = [],
): ServerPort {
  const { id: portId, networkId, macAddress, fixedAddresses } = port;
  const addresses = fixedAddresses.map(({ address }) => address);
  return { portId, networkId, tag, networkName, addresses, macAddress, slot: 0, floatingAddresses };
}

/** Stands for the floating IPs of ports while Neutron does not answer. */
export function withoutNeutron(error: unknown): ReadonlyMap<string, ServerPort["floatingAddresses"]> {
  if (error instanceof NetworkingError) return new Map();
  throw error;
}

/** The owner of a server's ports, by which Neutron's users find the ports of an availability zone. */
export const deviceOwner = (zone: string): string => `compute:${zone || "nova"}`;

/** How often a port is read again that Neutron or somebody else changes at the same time. */
const TAKES_MAX = 5;

/** Gives an existing port to a server. Refuses one that something else has got since it was read (409), or that is gone (400). */
export async function takePort(
  { networking }: Pick<NeutronDeps, "networking">,
  port: NeutronPort,
  {
    serverUuid,
    zone,
    host,
    allocation,
  }: {
    readonly serverUuid: string;
    readonly zone: string;
    readonly host?: string;
    /** The providers that serve the port's resource request. */
    readonly allocation?: unknown;
  },
): Promise<NeutronPort> {
  const taken = { device: { serverUuid, owner: deviceOwner(zone) }, ...(host !== undefined && { host }) };
  let present: NeutronPort | undefined = port;
  for (let takes = 0; takes < TAKES_MAX; takes += 1) {
    if (present === undefined) throw badRequest(`Port id ${port.id} could not be found.`);
    const { deviceId, revision } = present;
    if (deviceId !== "" && deviceId !== serverUuid) break;
    const profile = { ...present.profile, allocation };
    const update = allocation === undefined ? taken : { ...taken, profile };
    const outcome = await askNeighbour(() => networking.updatePort(port.id, update, revision));
    if (outcome.kind === "updated") return outcome.port;
    if (outcome.kind === "refused" || outcome.kind === "forbidden")
      throw badRequest(`Port update failed for port ${port.id}: ${outcome.why}`);
    // Its status may have changed, which says nothing about who has it.
    [present] = await askNeighbour(() => networking.ports({ id: port.id }, OWN_NAME));
  }
  throw conflict(`Port ${port.id} is still in use.`);
}

/** Explains why ports could not be made. Source: `_create_port_minimal` in nova/network/neutron.py. */
export function explainNoPorts(
  outcome: Exclude<CreatePortsOutcome, { kind: "created" }>,
  wanted: readonly Pick<NewNeutronPort, "address" | "networkId">[],
): Fault {
  const networks = [...new Set(wanted.map(({ networkId }) => networkId))].join(", ");
  const addresses = wanted.flatMap(({ address }) => address ?? []).join(", ");
  switch (outcome.kind) {
    case "over-quota":
      return new Fault(403, "Maximum number of ports exceeded");
    case "no-address":
      return badRequest(`No fixed IP addresses available for network: ${networks}`);
    case "address-taken":
      return badRequest(`Fixed IP ${addresses} is already in use.`);
    case "forbidden":
      return new Fault(403, outcome.why);
    case "refused":
      return badRequest(outcome.why);
    default:
      return outcome satisfies never;
  }
}

const zoneOf = (spec: ServerSpec | undefined): string => spec?.availabilityZone ?? "";

function newPortsOf(
  spec: ServerSpec,
  connections: readonly Connection[],
  securityGroups: readonly string[] | null,
): NewNeutronPort[] {
  return connections
    .filter(({ port }) => port === null)
    .map(({ network, address }) => ({
      ...{ projectId: spec.projectId, networkId: network.id, serverUuid: spec.uuid, address },
      ...{ deviceOwner: deviceOwner(spec.availabilityZone), securityGroups, host: null },
    }));
}

/**
 * Makes ports in the caller's name, as Nova does it, so that Neutron's policy applies. If Neutron does not answer, it may have made the ports. They
 * are left to the settler, since Neutron may still be at work.
 */
async function makePortsInNeutron(
  deps: NeutronDeps,
  wanted: readonly NewNeutronPort[],
  call: KnownCall,
  undo: () => Promise<void>,
): Promise<readonly NeutronPort[]> {
  const outcome = await askNeighbour(() => deps.networking.createPorts(wanted, askedBy(deps, call)));
  if (outcome.kind === "created") return outcome.ports;
  await undo();
  throw explainNoPorts(outcome, wanted);
}

/**
 * Refuses servers for which Neutron has made a port that requests resources, since it is known only now. Only this service sees the requests of ports.
 *
 * Source: `_create_port_minimal` and `_update_ports_for_instance` in nova/network/neutron.py, which fail the build.
 */
async function refuseRequests(
  { networking }: Pick<NeutronDeps, "networking">,
  specs: readonly ServerSpec[],
  made: readonly NeutronPort[],
  undo: () => Promise<void>,
): Promise<void> {
  for (let at = 0; at < specs.length; at += DEVICE_IDS_MAX) {
    const deviceIds = specs.slice(at, at + DEVICE_IDS_MAX).map(({ uuid }) => uuid);
    const shown = await askNeighbour(() => networking.ports({ deviceIds }, OWN_NAME));
    const refused = shown.find(({ id, groups }) => groups.length > 0 && made.some((port) => port.id === id));
    if (refused === undefined) continue;
    await undo();
    throw networkRequests(refused);
  }
}

/** The refusal of a port that was made on a network whose QoS policy requests resources. */
export const networkRequests = ({ deviceId, networkId }: Pick<NeutronPort, "deviceId" | "networkId">): Fault =>
  badRequest(
    `Using networks with QoS policy is not supported for instance ${deviceId}. (Network ID is ${networkId}): make a port there, and name it instead of the network.`,
  );

/** The settler does this for the ports that are left when Neutron fails here. */
async function giveBack(deps: NeutronDeps, opened: readonly OpenedNote[], keptPorts: readonly string[]): Promise<void> {
  for (const note of opened) {
    const isDone = await releasePorts(deps.networking, note.serverUuid, { keptPorts, named: [] }).catch(() => false);
    if (isDone) await deps.notes.removeNotes([note]);
  }
}

/** Removes the ports of servers that the quota cut off. The settler does this for what is left when Neutron or the database fails here. */
async function settle(
  deps: NeutronDeps,
  opened: readonly OpenedNote[],
  accepted: readonly ServerSpec[],
): Promise<void> {
  const kept = new Set(accepted.map(({ uuid }) => uuid));
  const others = opened.filter(({ serverUuid }) => !kept.has(serverUuid));
  await deps.notes.settleNotes(opened.filter(({ serverUuid }) => kept.has(serverUuid)));
  await giveBack(deps, others, []);
}
