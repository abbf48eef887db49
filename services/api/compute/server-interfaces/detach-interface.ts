import { detachChange, portsWithout } from "../../../../core/tasks/port-change.ts";
import type { ServerPort } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { conflict, type Fault, notFound, unavailable } from "../../http/fault.ts";
import { detachInNeutron } from "../neutron-ports/detach-in-neutron.ts";
import { type ActionTarget, findTarget } from "../server-actions/action-target.ts";
import { noteAction } from "../servers/note-action.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { alignInterfaces } from "./align-interfaces.ts";
import { patchServer, readServed, requirePortsChange } from "./patch-server.ts";

/** Maximum number of reads of a server that changes each time. */
const TRIES_MAX = 5;

/**
 * Detaches a port from a server: the guest releases the interface first, and then the port's allocations are freed. Refuses a server whose status does not allow it (409), a port that the server does not
 * have (404), and one whose interface the guest does not release (409). If the host does not answer (503), the server keeps the port.
 */
export async function detachInterface(deps: ServerDeps, call: KnownCall, id: string, port: string): Promise<void> {
  const target = await findTarget(deps, call, { id, action: "detach_interface" });
  requirePortsChange(target);
  const portId = canonicalUuid(port);
  const missing = notFound(`Port id ${port.slice(0, 100)} could not be found.`);
  if (portId === null) throw missing;
  await takeInterface(target, portId, missing);
  const { uuid, host } = target.server;
  try {
    if (deps.neutron !== null) await detachInNeutron(deps.neutron, target, portId, missing);
    else if (!(await removePort(deps, target, portId))) throw missing;
  } finally {
    await restoreInterfaces(target);
  }
  await noteAction(deps, call, { serverUuid: uuid, action: "detach_interface", host });
}

/** Lets the guest release the port's interface. Throws `missing` if the server does not have the port. */
async function takeInterface(target: ActionTarget, portId: string, missing: Fault): Promise<void> {
  let reason = "the server kept changing";
  for (let tries = 0, revision = -1; tries < TRIES_MAX; tries += 1) {
    const { server } = await readServed(target);
    if (!has(server.spec.ports, portId)) throw missing;
    // The host refuses interfaces of an older revision than another call's.
    if (server.revision === revision) break;
    revision = server.revision;
    const aligned = await alignInterfaces(target.cell, server, portsWithout(server.spec.ports, portId));
    if (aligned.kind === "done") return;
    if (aligned.kind === "silent")
      throw unavailable(
        `Host ${server.host} does not answer, so instance ${server.uuid} keeps port ${portId}. Try again later.`,
      );
    reason = aligned.reason;
  }
  await restoreInterfaces(target);
  throw conflict(
    `Device detach failed for the interface of port ${portId} of instance ${target.server.uuid}: ${reason}`,
  );
}

/**
 * Gives the guest the interfaces of the ports that its server has now. Another call may have given it an interface back while this one took the port from
 * the server, and a guest that refused to release one may have released another. An interface that cannot be given back here is given back when the host is next compared with its cell.
 */
export async function restoreInterfaces({ cell, server: { uuid } }: ActionTarget): Promise<void> {
  const read = await cell.server(uuid);
  if (read.kind === "answer" && read.value !== null) await alignInterfaces(cell, read.value, read.value.spec.ports);
}

/** Takes a port from a server and frees its allocations. Returns false if the server does not have it. */
export async function removePort(
  deps: Pick<ServerDeps, "networkPorts">,
  target: ActionTarget,
  portId: string,
): Promise<boolean> {
  const { uuid } = target.server;
  const [known] = (await deps.networkPorts?.ports([portId])) ?? [];
  const gone = new Error("the server does not have the port");
  try {
    await patchServer(target, async (served) => {
      const { spec } = served.server;
      if (!has(spec.ports, portId)) throw gone;
      const { spec: less, items } = detachChange(spec, portId, served);
      return { spec: less, more: [], less: items };
    });
  } catch (error) {
    if (error === gone) return false;
    throw error;
  }
  // A call that attaches the port again from here on makes a new binding, which must not be removed.
  if (known?.binding) await deps.networkPorts?.unbindPorts([portId], uuid, known.binding.atMs);
  if (known?.endsWithServer !== true) return true;
  const [left] = (await deps.networkPorts?.ports([portId])) ?? [];
  if (left?.binding === null) await deps.networkPorts?.deletePort(portId);
  return true;
}

const has = (ports: readonly ServerPort[], portId: string): boolean => ports.some((one) => one.portId === portId);
