import { randomUUID } from "node:crypto";
import { Type } from "typebox";
import type { PortQuery, PortStore } from "../../../core/stores/api/port-store.ts";
import type { PortGroup, PortRecord } from "../../../core/tasks/port-record.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { callOf, type KnownCall } from "../http/call.ts";
import { storedSpelling } from "../http/canonical-uuid.ts";
import type { Http } from "../http/create-http.ts";
import { badRequest, conflict, Fault, notFound } from "../http/fault.ts";
import { registerNeighbourVersion } from "../http/neighbour-version.ts";
import { AnyQuery, Uuid } from "../http/schema.ts";
import { filteredViews, type NetworkQuery, withFields } from "./filtered-views.ts";
import { makePorts } from "./make-ports.ts";
import type { NetworkRule } from "./network-rule.ts";
import { CreatePortBody, type ResourceRequest, UpdatePortBody } from "./port-schemas.ts";
import { portView } from "./port-view.ts";
import { isPortAddress, SIMPLE_NETWORK } from "./simple-network.ts";

export interface PortDeps {
  readonly store: PortStore;
  readonly clock: Clock;
  readonly networks: NetworkRule;
  /** Maximum number of ports that one project makes by these routes. Null for no limit. */
  readonly ownedMax: number | null;
}

const IdParams = Type.Object({ id: Uuid });

/**
 * Registers `/v2.0/ports` of the Networking API. Ports of Berth's own network get an address; the others describe only what they ask of a
 * host. The creator of a port gives the `resource_request` that Neutron would derive from the port's QoS policy.
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
    const { query } = request;
    const asked = query.project_id ?? query.tenant_id;
    const projectId = identity.isAdmin ? (typeof asked === "string" ? asked : null) : identity.projectId;
    const ports = await store.listPorts({ ...storedFilters(query), projectId, limit: options.pageMax });
    return { ports: filteredViews(ports.map(portView), query) };
  });

  http.post("/v2.0/ports", { schema: { body: CreatePortBody } }, async (request, reply) => {
    const port = await createPort(deps, callOf(request), request.body);
    await refuseBeyondLimit(deps, port);
    reply.code(201);
    return { port: portView(port) };
  });

  http.get("/v2.0/ports/:id", { schema: { params: IdParams, querystring: AnyQuery } }, async (request) => ({
    port: withFields(portView(await findPort(store, callOf(request), request.params.id)), request.query),
  }));

  http.put("/v2.0/ports/:id", { schema: { params: IdParams, body: UpdatePortBody } }, async (request) => {
    const { id } = await findPort(store, callOf(request), request.params.id);
    const { name } = request.body.port;
    if (name !== undefined && !(await store.renamePort(id, name))) throw portNotFound(id);
    return { port: portView(await findPort(store, callOf(request), id)) };
  });

  http.delete("/v2.0/ports/:id", { schema: { params: IdParams } }, async (request, reply) => {
    const { id, networkId } = await findPort(store, callOf(request), request.params.id);
    if (await store.deleteFreePort(id)) return reply.code(204).send();
    // Otherwise the server would continue with an address that another server could get.
    const { binding } = await findPort(store, callOf(request), id);
    throw conflict(
      `Unable to complete operation on port ${id} for network ${networkId}. Port already has an attached device ${binding?.serverUuid ?? ""}. Remove the port from the server first.`,
    );
  });
}

/** The filters that the store applies, so that a page holds only what was asked for. A field of several values is filtered afterwards. */
function storedFilters(query: NetworkQuery): Partial<PortQuery> {
  const text = (name: string): string | undefined => {
    const [value, ...others] = [query[name] ?? []].flat();
    return others.length === 0 ? value : undefined;
  };
  const address = [query.fixed_ips ?? []]
    .flat()
    .find((one) => one.startsWith("ip_address="))
    ?.slice("ip_address=".length);
  const subnet = [query.fixed_ips ?? []]
    .flat()
    .find((one) => one.startsWith("subnet_id="))
    ?.slice("subnet_id=".length);
  const [id, name, device, network] = [text("id"), text("name"), text("device_id"), text("network_id")];
  const onSubnet = subnet === SIMPLE_NETWORK.subnetId ? SIMPLE_NETWORK.id : subnet;
  const networkId = network ?? onSubnet;
  return {
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    ...(device !== undefined && { serverUuid: device }),
    ...(networkId !== undefined && { networkId }),
    ...(address !== undefined && { address }),
  };
}

/** A port on Berth's own network gets an address; the others have none. */
async function createPort(deps: PortDeps, call: KnownCall, body: CreatePortBody): Promise<PortRecord> {
  const port = newPort(call, body, deps.clock.now());
  const asked = body.port.fixed_ips?.[0]?.ip_address ?? null;
  if (deps.networks === "simple" && port.networkId === SIMPLE_NETWORK.id) {
    if (asked !== null && !isPortAddress(asked))
      throw badRequest(`Invalid input for operation: IP address ${asked} is not a valid IP for the specified subnet.`);
    const { projectId, name, groups } = port;
    const requested = { projectId, name, groups, serverUuid: null, address: asked, endsWithServer: false };
    const [made] = await makePorts(deps.store, [requested], port.createdAtMs);
    if (made !== undefined) return made;
  }
  if (asked !== null) throw badRequest("Only ports of Berth's own network have addresses: leave out fixed_ips.");
  if ((await deps.store.createPort(port)) === "id-taken") throw conflict(`Port ${port.id} exists already.`);
  return port;
}

/**
 * Takes the new port back if its project has too many. So a project has no more than it may, unless an api dies in between, and of calls at the same time for
 * the last ones all may be refused.
 */
async function refuseBeyondLimit({ store, ownedMax }: PortDeps, { id, projectId }: PortRecord): Promise<void> {
  if (ownedMax === null || (await store.countOwned(projectId, ownedMax + 1)) <= ownedMax) return;
  // A server may have got it meanwhile.
  if (!(await store.deleteFreePort(id))) return;
  throw conflict(`Quota exceeded for resources: ['port'] (${ownedMax}). Delete ports that no server needs.`);
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
    address: null,
    endsWithServer: false,
    groups: port.resource_request ? groupsOf(port.resource_request) : [],
    securityGroups: null,
    createdAtMs: nowMs,
    binding: null,
  };
}

/** Both of Neutron's forms: one group (before the extension port-resource-request-groups), or several that lie in one subtree. */
function groupsOf(request: ResourceRequest): PortGroup[] {
  if (!("request_groups" in request)) return [groupOf(request)];
  const groups = request.request_groups.map(groupOf);
  const ids = new Set(groups.map(({ id }) => id));
  if (ids.size < groups.length) throw badRequest("Two of the port's request_groups have the same id.");
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

function portNotFound(id: string): Fault {
  return notFound(`Port ${id.slice(0, 100)} could not be found.`);
}
