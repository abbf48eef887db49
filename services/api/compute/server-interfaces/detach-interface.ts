import { detachChange } from "../../../../core/tasks/port-change.ts";
import type { KnownCall } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import { type Fault, notFound } from "../../http/fault.ts";
import { detachInNeutron } from "../neutron-ports/detach-in-neutron.ts";
import { type ActionTarget, findTarget } from "../server-actions/action-target.ts";
import { noteAction } from "../servers/note-action.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { patchServer } from "./patch-server.ts";

/** Detaches a port from a server and frees its allocations. Refuses a port that the server does not have. */
export async function detachInterface(deps: ServerDeps, call: KnownCall, id: string, port: string): Promise<void> {
  const target = await findTarget(deps, call, { id, action: "detach_interface" });
  const portId = canonicalUuid(port);
  const missing = notFound(`Port id ${port.slice(0, 100)} could not be found.`);
  if (portId === null) throw missing;
  if (deps.neutron !== null) await detachInNeutron(deps.neutron, target, portId, missing);
  else await detachOwn(deps, target, portId, missing);
  const { uuid: serverUuid, host } = target.server;
  await noteAction(deps, call, { serverUuid, action: "detach_interface", host });
}

async function detachOwn(deps: ServerDeps, target: ActionTarget, portId: string, missing: Fault): Promise<void> {
  const [known] = (await deps.networkPorts?.ports([portId])) ?? [];
  await patchServer(target, async (served) => {
    const { spec } = served.server;
    if (spec.ports.every((one) => one.portId !== portId)) throw missing;
    const { spec: without, items } = detachChange(spec, portId, served);
    return { spec: without, more: [], less: items };
  });
  const { uuid: serverUuid } = target.server;
  // A call that attaches the port again from here on makes a new binding, which must not be removed.
  if (known?.binding) await deps.networkPorts?.unbindPorts([portId], serverUuid, known.binding.atMs);
  if (known?.endsWithServer !== true) return;
  const [left] = (await deps.networkPorts?.ports([portId])) ?? [];
  if (left?.binding === null) await deps.networkPorts?.deletePort(portId);
}
