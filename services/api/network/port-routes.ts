import { randomUUID } from "node:crypto";
import { Type } from "typebox";
import type { PortStore } from "../../../core/stores/api/port-store.ts";
import type { PortGroup, PortRecord } from "../../../core/tasks/port-record.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { callOf, type KnownCall } from "../http/call.ts";
import { storedSpelling } from "../http/canonical-uuid.ts";
import type { Http } from "../http/create-http.ts";
import { badRequest, conflict, Fault, notFound } from "../http/fault.ts";
import { registerNeighbourVersion } from "../http/neighbour-version.ts";
import { AnyQuery, Uuid } from "../http/schema.ts";
import { macOf } from "./mac-of.ts";
import { CreatePortBody, type ResourceRequest } from "./port-schemas.ts";

export interface PortDeps {
  readonly store: PortStore;
  readonly clock: Clock;
}

const IdParams = Type.Object({ id: Uuid });

/**
 * Registers the part of the Networking API's `/v2.0/ports` that describes what ports ask of a host. Berth connects no networks, so the
 * creator of a port gives the `resource_request` that Neutron would derive from the port's QoS policy.
 */
export function registerPortRoutes(
  http: Http,
  deps: PortDeps,
  options: { readonly pageMax: number; readonly publicUrl: string | null },
): void {
  const { store } = deps;
  const { publicUrl } = options;
  registerNeighbourVersion(http, { prefix: "/network", id: "v2.0", path: "/v2.0/", status: 200, publicUrl });
  http.get("/v2.0/ports", { schema: { querystring: AnyQuery } }, async (request) => {
    const { identity } = callOf(request);
    const ports = await store.listPorts({
      projectId: identity.isAdmin ? null : identity.projectId,
      limit: options.pageMax,
    });
    return { ports: ports.map(portView) };
  });

  http.post("/v2.0/ports", { schema: { body: CreatePortBody } }, async (request, reply) => {
    const port = newPort(callOf(request), request.body, deps.clock.now());
    if ((await store.createPort(port)) === "id-taken") throw conflict(`Port ${port.id} exists already.`);
    reply.code(201);
    return { port: portView(port) };
  });

  http.get("/v2.0/ports/:id", { schema: { params: IdParams } }, async (request) => ({
    port: portView(await findPort(store, callOf(request), request.params.id)),
  }));

  http.delete("/v2.0/ports/:id", { schema: { params: IdParams } }, async (request, reply) => {
    const { id } = await findPort(store, callOf(request), request.params.id);
    if (!(await store.deletePort(id))) throw portNotFound(id);
    return reply.code(204).send();
  });
}

async function findPort(store: PortStore, { identity }: KnownCall, asked: string): Promise<PortRecord> {
  const [port] = await store.ports([storedSpelling(asked)]);
  if (port === undefined || !(identity.isAdmin || port.projectId === identity.projectId)) throw portNotFound(asked);
  return port;
}

function newPort({ identity }: KnownCall, { port }: CreatePortBody, nowMs: number): PortRecord {
  const projectId = port.project_id ?? port.tenant_id ?? identity.projectId;
  if (projectId !== identity.projectId && !identity.isAdmin)
    throw new Fault(403, "Only admins create ports for another project.");
  if (port.resource_request && !identity.isAdmin)
    throw new Fault(
      403,
      "Only admins create ports with a resource_request: in Neutron it comes from a QoS policy, which admins make. Leave it out, or ask an admin to create the port for your project (project_id).",
    );
  return {
    id: randomUUID(),
    projectId,
    networkId: storedSpelling(port.network_id),
    name: port.name ?? "",
    groups: port.resource_request ? groupsOf(port.resource_request) : [],
    createdAtMs: nowMs,
    binding: null,
  };
}

/** Both of Neutron's forms: one group (before the extension port-resource-request-groups), or several that lie in one subtree. */
function groupsOf(request: ResourceRequest): PortGroup[] {
  if (!("request_groups" in request)) return [groupOf(request)];
  const groups = request.request_groups.map(groupOf);
  const ids = new Set(groups.map(({ id }) => id));
  if (ids.size < groups.length) throw badRequest("Two of the port's request_groups have one id.");
  const subtree = new Set((request.same_subtree ?? []).map(storedSpelling));
  if (subtree.size > 0 && (subtree.size !== ids.size || ![...subtree].every((id) => ids.has(id))))
    throw badRequest("same_subtree must name all of the port's request_groups, or be left out.");
  return groups;
}

function groupOf(group: {
  readonly id?: string;
  readonly resources: Readonly<Record<string, number>>;
  readonly required?: readonly string[];
}): PortGroup {
  const { id, resources, required = [] } = group;
  return { id: id === undefined ? randomUUID() : storedSpelling(id), resources, required };
}

function portView(port: PortRecord): Record<string, unknown> {
  const at = `${new Date(port.createdAtMs).toISOString().slice(0, 19)}Z`;
  const ids = port.groups.map(({ id }) => id);
  return {
    id: port.id,
    name: port.name,
    network_id: port.networkId,
    project_id: port.projectId,
    tenant_id: port.projectId,
    status: port.binding === null ? "DOWN" : "ACTIVE",
    admin_state_up: true,
    // The server that has the port, or had it last: deleting a server does not remove its bindings.
    device_id: port.binding?.serverUuid ?? "",
    device_owner: port.binding === null ? "" : "compute:nova",
    mac_address: macOf(port.id),
    fixed_ips: [],
    "binding:vnic_type": "normal",
    resource_request:
      port.groups.length === 0 ? null : { request_groups: port.groups, same_subtree: ids.length > 1 ? ids : [] },
    created_at: at,
    updated_at: at,
  };
}

function portNotFound(id: string): Fault {
  return notFound(`Port ${id.slice(0, 100)} could not be found.`);
}
