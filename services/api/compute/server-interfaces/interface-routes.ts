import { Type } from "typebox";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { hydrateServer } from "../../cells/hydrate-servers.ts";
import { callOf, type KnownCall } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import type { Http } from "../../http/create-http.ts";
import { notFound } from "../../http/fault.ts";
import { AnyQuery } from "../../http/schema.ts";
import { neutronInterfaces } from "../neutron-ports/neutron-interfaces.ts";
import { serverNotFound } from "../servers/request-finder.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { attachInterface } from "./attach-interface.ts";
import { detachInterface } from "./detach-interface.ts";
import { AttachBody, InterfaceAnswer, InterfaceListAnswer } from "./interface-schemas.ts";
import { interfaceView } from "./interface-view.ts";

const of = (name: string) => ({ rule: `os-attach-interfaces:${name}` });
const ServerParams = Type.Object({ id: Type.String() });
const PortParams = Type.Object({ id: Type.String(), portId: Type.String() });

/** `/servers/{id}/os-interface`: attaches and detaches the ports of a server, with their resource requests. */
export function registerInterfaceRoutes(http: Http, deps: ServerDeps): void {
  const list = { params: ServerParams, querystring: AnyQuery, response: { 200: InterfaceListAnswer } };
  http.get("/servers/:id/os-interface", { config: of("list"), schema: list }, async (request) => {
    const call = callOf(request);
    const spec = await specOf(deps, call, request.params.id);
    return { interfaceAttachments: await viewsOf(deps, call, spec) };
  });

  const show = { params: PortParams, querystring: AnyQuery, response: { 200: InterfaceAnswer } };
  http.get("/servers/:id/os-interface/:portId", { config: of("show"), schema: show }, async (request) => {
    const call = callOf(request);
    const { id, portId } = request.params;
    const views = await viewsOf(deps, call, await specOf(deps, call, id));
    const view = views.find((one) => one.port_id === canonicalUuid(portId));
    if (view === undefined)
      throw notFound(
        `Port id ${portId.slice(0, 100)} could not be found. Instance ${id.slice(0, 100)} has no such port.`,
      );
    return { interfaceAttachment: view };
  });

  const attach = { params: ServerParams, body: AttachBody, response: { 200: InterfaceAnswer } };
  http.post("/servers/:id/os-interface", { config: of("create"), schema: attach }, async (request) => {
    const call = callOf(request);
    const { id } = request.params;
    const port = await attachInterface(deps, call, id, request.body);
    const views = deps.neutron === null ? [] : await viewsOf(deps, call, await specOf(deps, call, id));
    return { interfaceAttachment: views.find((one) => one.port_id === port.portId) ?? interfaceView(port, call) };
  });

  http.delete(
    "/servers/:id/os-interface/:portId",
    { config: of("delete"), schema: { params: PortParams } },
    async (request, reply) => {
      const { id, portId } = request.params;
      await detachInterface(deps, callOf(request), id, portId);
      return reply.code(202).send();
    },
  );
}

/** Neutron is asked for the present state of its ports. */
async function viewsOf({ neutron }: ServerDeps, call: KnownCall, spec: ServerSpec) {
  if (neutron !== null) return neutronInterfaces(neutron, call, spec);
  return spec.ports.map((port) => interfaceView(port, call));
}

async function specOf(deps: ServerDeps, call: KnownCall, id: string): Promise<ServerSpec> {
  const record = await deps.finder.find(id, call);
  const known = record === null ? null : await hydrateServer(record, deps.cells, { withDeleted: false });
  if (known === null) throw serverNotFound(id);
  return known.server.spec;
}
