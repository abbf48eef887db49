import type { PortBinding } from "../../../../core/stores/api/port-store.ts";
import { attachChange, groupsToAttach } from "../../../../core/tasks/port-change.ts";
import type { PortRecord } from "../../../../core/tasks/port-record.ts";
import type { ServerPort } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, conflict, Fault, invalidField, notFound } from "../../http/fault.ts";
import { bindPorts, releasePort } from "../../network/bind-ports.ts";
import { makePorts } from "../../network/make-ports.ts";
import type { NetworkRule } from "../../network/network-rule.ts";
import { serverPortOf } from "../../network/server-port.ts";
import { isPortAddress, SIMPLE_NETWORK } from "../../network/simple-network.ts";
import { attachInNeutron } from "../neutron-ports/attach-in-neutron.ts";
import { detachInNeutron } from "../neutron-ports/detach-in-neutron.ts";
import { type ActionTarget, findTarget } from "../server-actions/action-target.ts";
import { noteAction } from "../servers/note-action.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { alignInterfaces } from "./align-interfaces.ts";
import { removePort, restoreInterfaces } from "./detach-interface.ts";
import type { AttachBody } from "./interface-schemas.ts";
import { patchServer, requirePortsChange, type ServedServer } from "./patch-server.ts";
import { refuseManyPorts } from "./refuse-many-ports.ts";
import { WaysOnHost } from "./ways-on-host.ts";

const TAG_FROM_MINOR = 49;
/** Maximum number of reads of a server that changes each time. */
const TRIES_MAX = 5;

/**
 * Attaches a port to a server: the port's resource request is added to the server's allocations, on the first providers of the
 * host that have room, and the guest gets an interface. Refuses a server whose status does not allow it (409), an unknown port (404), a port of another server (409), a port for which the host has no room
 * (400), and one for which the guest can get no interface (409); then nothing is changed. A network instead of a port gets the server a port of its own. If
 * the host does not answer, the guest gets the interface when the host is next compared with its cell.
 */
export async function attachInterface(
  deps: ServerDeps,
  call: KnownCall,
  id: string,
  body: AttachBody,
): Promise<ServerPort> {
  refuseBody(call, body);
  const target = await findTarget(deps, call, { id, action: "attach_interface" });
  requirePortsChange(target);
  refuseManyPorts(target.server.spec);
  const attached =
    deps.neutron === null
      ? await attachOwn(deps, call, target, body)
      : await attachInNeutron(deps.neutron, call, target, body);
  await giveInterface(deps, target, attached);
  await noteAction(deps, call, {
    serverUuid: target.server.uuid,
    action: "attach_interface",
    host: target.server.host,
  });
  return attached;
}

/** Lets the host give the guest its interfaces. If it refuses, the port is detached again. */
async function giveInterface(deps: ServerDeps, target: ActionTarget, { portId }: ServerPort): Promise<void> {
  const { uuid } = target.server;
  let reason = "the server kept changing";
  let { server } = target;
  for (let tries = 0, revision = -1; tries < TRIES_MAX; tries += 1) {
    const read = await target.cell.server(uuid);
    // Another call may have taken the port away again, and then it is not this call's to give back. If the cell does not answer, the guest
    // gets its interfaces when its host is next compared.
    if (read.kind !== "answer" || read.value?.spec.ports.some((port) => port.portId === portId) !== true) return;
    // The host refuses interfaces of an older revision than another call's.
    server = read.value;
    if (server.revision === revision) break;
    revision = server.revision;
    const aligned = await alignInterfaces(target.cell, server, server.spec.ports);
    if (aligned.kind !== "refused") return;
    reason = aligned.reason;
  }
  const missing = notFound(`Port id ${portId} could not be found.`);
  await (deps.neutron === null
    ? removePort(deps, target, portId)
    : detachInNeutron(deps.neutron, { ...target, server }, portId, missing));
  // The guest may have the interface all the same, also from a conductor that found the port in the server's row meanwhile.
  await restoreInterfaces(target);
  throw conflict(`Failed to attach network adapter device to ${uuid}: ${reason}`);
}

function attachOwn(deps: ServerDeps, call: KnownCall, target: ActionTarget, body: AttachBody): Promise<ServerPort> {
  const { portId, address, tag } = readBody(call, body, deps.networks);
  if (portId === null) return attachFresh(deps, target, address, tag);
  return attachPort(deps, call, target, { portId, tag });
}

async function attachPort(
  deps: ServerDeps,
  call: KnownCall,
  target: ActionTarget,
  { portId, tag }: { readonly portId: string; readonly tag: string },
): Promise<ServerPort> {
  const port = await findPort(deps, call, portId);
  const isOwn = ({ server }: Pick<ServedServer, "server">) => server.spec.ports.some((one) => one.portId === portId);
  const inUse = () => conflict(`Port ${portId} is still in use.`);
  if (isOwn(target)) throw inUse();
  const [binding] = await bindPorts(deps, [port], target.server.uuid);
  const attached = serverPortOf(port, tag);
  const ways = new WaysOnHost(target);
  try {
    await patchServer(target, async (served, lacking) => {
      if (isOwn(served)) throw inUse();
      refuseManyPorts(served.server.spec);
      const groups = groupsToAttach(served.server.spec, served.mapping, port);
      if (groups.length === 0) return attachWithoutClaim(served, attached);
      const way = await ways.next(served.host, groups, lacking);
      if (way === "again") return way;
      const { spec, items } = attachChange(served.server.spec, attached, groups, way);
      return { spec, more: items, less: [] };
    });
  } catch (error) {
    if (binding !== undefined) await releaseBinding(deps, target, binding);
    throw error;
  }
  return attached;
}

/**
 * Makes a port for the server on Berth's own network. When the call is refused, the port is removed again. After any other error it stays
 * until the server is deleted, because the server may have it.
 */
async function attachFresh(
  { networkPorts, clock }: ServerDeps,
  target: ActionTarget,
  address: string | null,
  tag: string,
): Promise<ServerPort> {
  const { uuid, spec } = target.server;
  const requested = { projectId: spec.projectId, serverUuid: uuid, address, endsWithServer: true };
  const [port] = networkPorts === null ? [] : await makePorts(networkPorts, [requested], clock.now());
  if (port === undefined) throw notFound(`Network ${SIMPLE_NETWORK.id} could not be found.`);
  const attached = serverPortOf(port, tag);
  try {
    await patchServer(target, async (served) => {
      refuseManyPorts(served.server.spec);
      return attachWithoutClaim(served, attached);
    });
  } catch (error) {
    if (error instanceof Fault && error.status < 500) await networkPorts?.deletePort(port.id);
    throw error;
  }
  return attached;
}

const attachWithoutClaim = ({ server }: ServedServer, port: ServerPort) => ({
  ...attachChange(server.spec, port, [], new Map()),
  ...{ more: [], less: [] },
});

interface AskedInterface {
  /** Null for a new port on Berth's own network. */
  readonly portId: string | null;
  readonly address: string | null;
  readonly tag: string;
}

function refuseBody(call: KnownCall, { interfaceAttachment: asked = {} }: AttachBody): void {
  const { net_id, port_id, fixed_ips } = asked;
  if (asked.tag !== undefined && call.minor < TAG_FROM_MINOR)
    throw badRequest(
      "Invalid input for field/attribute interfaceAttachment. Additional properties are not allowed ('tag' was unexpected)",
    );
  if (net_id !== undefined && port_id != null) throw badRequest("Must not input both network_id and port_id");
  if (fixed_ips !== undefined && net_id === undefined)
    throw badRequest("Must input network_id when request IP address");
}

function readBody(
  call: KnownCall,
  { interfaceAttachment: asked = {} }: AttachBody,
  networks: NetworkRule,
): AskedInterface {
  const { net_id, port_id, fixed_ips, tag = "" } = asked;
  if (port_id != null) return { portId: storedSpelling(port_id), address: null, tag };
  if (networks === "simple") {
    if (net_id !== undefined && storedSpelling(net_id) !== SIMPLE_NETWORK.id)
      throw notFound(`Network ${net_id} could not be found.`);
    const address = fixed_ips?.[0]?.ip_address ?? null;
    if (address !== null && !isPortAddress(address))
      throw badRequest(`Fixed IP address ${address} is not one of network ${SIMPLE_NETWORK.id}.`);
    return { portId: null, address, tag };
  }
  if (net_id !== undefined) throw invalidField("net_id", net_id, "Berth connects no networks: name a port.");
  throw badRequest(
    `No specific network was requested and none are available for project '${call.identity.projectId}'.`,
  );
}

async function findPort({ networkPorts }: ServerDeps, { identity }: KnownCall, id: string): Promise<PortRecord> {
  const [port] = (await networkPorts?.ports([id])) ?? [];
  if (port === undefined || !(identity.isAdmin || port.projectId === identity.projectId))
    throw notFound(`Port id ${id} could not be found.`);
  return port;
}

/**
 * Releases the port after a refusal, unless another call has attached it to the server or is about to. If that call fails too, the binding
 * is released when it is old.
 */
async function releaseBinding(
  { networkPorts }: ServerDeps,
  { cell, server }: ActionTarget,
  binding: PortBinding,
): Promise<void> {
  const now = await cell.server(server.uuid);
  if (now.kind !== "answer" || now.value?.spec.ports.some((port) => port.portId === binding.id)) return;
  if (networkPorts !== null) await releasePort(networkPorts, binding, server.uuid);
}
