import { DIRECT_VNIC } from "../../../../core/pinning/direct-ports.ts";
import type { OpenedNote } from "../../../../core/stores/api/port-note-store.ts";
import { BINDING_FAILED, type NeutronPort } from "../../../../core/stores/networking.ts";
import { attachChange, groupsToAttach, portAllocations } from "../../../../core/tasks/port-change.ts";
import type { PortResourceRequest, ServerPort } from "../../../../proto/gen/berth/shared.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import { badRequest, conflict, Fault, notFound } from "../../http/fault.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import { type ActionTarget, wrongState } from "../server-actions/action-target.ts";
import type { AttachBody } from "../server-interfaces/interface-schemas.ts";
import { patchServer } from "../server-interfaces/patch-server.ts";
import { refuseManyPorts } from "../server-interfaces/refuse-many-ports.ts";
import { WaysOnHost } from "../server-interfaces/ways-on-host.ts";
import {
  deviceOwner,
  explainNoPorts,
  networkRequests,
  serverPortOfNeutron,
  takePort,
  withoutNeutron,
} from "./connect-to-neutron.ts";
import { type Connection, readConnections } from "./read-connections.ts";
import { floatingOf } from "./refresh-ports.ts";
import { deleteOwnPort, unbindPort } from "./release-ports.ts";
import { withOpenNote } from "./with-open-note.ts";

/** Source: the statuses in nova/api/openstack/compute/attach_interfaces.py. */
const REFUSALS = { missing: notFound, ambiguous: badRequest, taken: conflict };

/**
 * Attaches a port of Neutron to a server: an existing one, or one that is made on a network. The port is bound to the server's host before the
 * server's record names it. A refusal gives it back; what an error leaves behind is found by the settler.
 */
export async function attachInNeutron(
  deps: NeutronDeps,
  call: KnownCall,
  target: ActionTarget,
  { interfaceAttachment: { net_id, port_id, fixed_ips, tag = "" } = {} }: AttachBody,
): Promise<ServerPort> {
  const { uuid, host, status, spec } = target.server;
  if (host === null) throw wrongState({ action: target.action, uuid }, status);
  const address = fixed_ips?.[0]?.ip_address;
  const asked = port_id != null ? { port: port_id } : { uuid: net_id ?? "", ...(address && { fixed_ip: address }) };
  const networks = port_id == null && net_id === undefined ? undefined : [asked];
  const [connection] = await readConnections(deps, networks, {
    call,
    projectId: spec.projectId,
    servers: 1,
    faults: REFUSALS,
  });
  if (connection === undefined)
    throw badRequest(`No specific network was requested and none are available for project '${spec.projectId}'.`);
  if (connection.physicalNetwork !== null)
    throw badRequest(
      `Port ${connection.port?.id} has the VNIC type ${DIRECT_VNIC}, and can only be given to a server when the server is created.`,
    );
  let attached: ServerPort | null = null;
  const keptPorts = connection.port === null ? [] : [connection.port.id];
  await withOpenNote(deps.notes, { serverUuid: uuid, keptPorts }, async (opened) => {
    const port = await bindConnection(deps, call, target, { ...connection, host });
    const ways = new WaysOnHost(target);
    try {
      if (port.vifType === BINDING_FAILED) throw bindingFailed(port.id);
      if (connection.port === null && port.groups.length > 0) throw networkRequests(port);
      const floating = await floatingOf(deps.floatingIps, keptPorts).catch(withoutNeutron);
      const attaching = serverPortOfNeutron(port, connection.network.name, tag, floating.get(port.id));
      await patchServer(target, async (served, lacking) => {
        const { spec: present } = served.server;
        if (served.host !== host) throw conflict(`Instance ${uuid} is no longer on its host; try again.`);
        if (present.ports.some(({ portId }) => portId === port.id)) throw conflict(`Port ${port.id} is still in use.`);
        refuseManyPorts(present);
        const groups = groupsToAttach(present, served.mapping, port);
        const way = groups.length === 0 ? new Map<string, string>() : await ways.next(host, groups, lacking);
        if (way === "again") return way;
        if (groups.length > 0) await bindServed(deps, target, port, { host, groups, way });
        const change = attachChange(present, attaching, groups, way);
        return { spec: change.spec, more: change.items, less: [] };
      });
      attached = attaching;
    } catch (error) {
      // A fault of this kind means that this call has not written the port into the server's record.
      if (error instanceof Fault && error.status < 500)
        if (connection.port === null) await deleteMade(deps, port, uuid);
        else if (await mayUnbind(target, port.id, opened)) await unbindAgain(deps, port, uuid);
      throw error;
    }
    return true;
  });
  if (attached === null) throw new Error("a port was attached without a record of it");
  return attached;
}

/**
 * Binds a port whose resource request is about to be claimed. Neutron is told of the providers first, so that the record never names a port that is bound
 * without them. If the claim fails, other providers are told, or the port is given back.
 */
async function bindServed(
  deps: NeutronDeps,
  { server: { uuid, spec } }: ActionTarget,
  port: NeutronPort,
  {
    host,
    groups,
    way,
  }: {
    readonly host: string;
    readonly groups: readonly PortResourceRequest[];
    readonly way: ReadonlyMap<string, string>;
  },
): Promise<void> {
  const allocation = portAllocations(groups, Object.fromEntries(way)).get(port.id) ?? undefined;
  const to = { serverUuid: uuid, zone: spec.availabilityZone, host, allocation };
  const bound = await takePort(deps, port, to);
  if (bound.vifType === BINDING_FAILED) throw bindingFailed(port.id);
}

/** Nova answers 500 without an advice that helps. */
const bindingFailed = (id: string): Fault =>
  badRequest(`Binding failed for port ${id}, please check neutron logs for more information.`);

async function bindConnection(
  deps: NeutronDeps,
  call: KnownCall,
  { server: { uuid, spec } }: ActionTarget,
  { port, network, address, host }: Connection & { readonly host: string },
): Promise<NeutronPort> {
  const zone = spec.availabilityZone;
  // A port that requests resources is bound when it is known which providers serve it.
  if (port !== null && port.groups.length > 0) return takePort(deps, port, { serverUuid: uuid, zone });
  if (port !== null) return takePort(deps, port, { serverUuid: uuid, zone, host });
  const wanted = {
    ...{ projectId: spec.projectId, networkId: network.id, serverUuid: uuid, address },
    ...{ deviceOwner: deviceOwner(zone), securityGroups: null, host: null },
  };
  const outcome = await askNeighbour(() => deps.networking.createPorts([wanted], askedBy(deps, call)));
  const [made] = outcome.kind === "created" ? outcome.ports : [];
  if (outcome.kind !== "created") throw explainNoPorts(outcome, [wanted]);
  if (made === undefined) throw new Error("Neutron made no port");
  try {
    // Only this service may bind a port.
    return await takePort(deps, made, { serverUuid: uuid, zone, host });
  } catch (error) {
    if (error instanceof Fault && error.status < 500) await deleteMade(deps, made, uuid);
    throw error;
  }
}

/**
 * Whether this call may unbind a port that it has bound for nothing: another call may attach the same port to the same server. The note was open when
 * this call began if the other one began earlier, and otherwise the server's record says it. If this is not known, the settler compares the record
 * with Neutron later.
 */
async function mayUnbind(
  { cell, server }: ActionTarget,
  portId: string,
  opened: OpenedNote | undefined,
): Promise<boolean> {
  if (opened?.wasOpen !== false) return false;
  const now = await cell.server(server.uuid);
  return now.kind === "answer" && now.value?.spec.ports.some((port) => port.portId === portId) !== true;
}

/** If Neutron fails here, the settler does this. */
async function deleteMade({ networking }: NeutronDeps, port: NeutronPort, uuid: string): Promise<void> {
  await deleteOwnPort(networking, port, uuid).catch(() => undefined);
}

/** If Neutron fails here, the settler does this. */
async function unbindAgain({ networking }: NeutronDeps, port: NeutronPort, uuid: string): Promise<void> {
  await unbindPort(networking, port, uuid).catch(() => undefined);
}
