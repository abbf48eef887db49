import { Type } from "typebox";
import type { PortStore } from "../../../core/stores/api/port-store.ts";
import { callOf } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { Fault, notFound } from "../http/fault.ts";
import { AnyQuery } from "../http/schema.ts";
import { filteredViews, type NetworkQuery, type View, withFields } from "./filtered-views.ts";
import type { NetworkRule } from "./network-rule.ts";
import { networkView, subnetView } from "./simple-network.ts";

const IdParams = Type.Object({ id: Type.String() });
const LIST = { schema: { querystring: AnyQuery } };
const SHOW = { schema: { querystring: AnyQuery, params: IdParams } };

/** The extensions whose fields and routes are served. */
const EXTENSIONS = {
  binding: "Port Binding",
  "port-resource-request": "Port Resource Request",
  "port-resource-request-groups": "Port Resource Request Groups",
  "project-id": "project_id field enabled",
  quotas: "Quota management support",
  "security-group": "security-group",
} as const;

/** Collections that clients list and that are always empty. */
const EMPTY = [
  ...["floatingips", "routers", "subnetpools", "agents", "availability_zones", "trunks", "address-scopes"],
  ...["address-groups", "rbac-policies", "segments", "qos/policies"],
] as const;

/** The key of each resource in a project's quota. */
const QUOTAS = ["network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule"];

/**
 * Registers the part of the Networking API that clients need beside ports and security groups: the one network with its subnet, and empty lists of the
 * resources that do not exist here. With the rule `none` there is no network either. Nothing of it can be changed.
 *
 * Source: https://docs.openstack.org/api-ref/network/v2/
 */
export function registerNetworkRoutes(http: Http, rule: NetworkRule, ports: Pick<PortStore, "listPorts">): void {
  const isServed = rule === "simple";
  registerCollection(http, "networks", "network", (projectId) => (isServed ? [networkView(projectId)] : []));
  registerCollection(http, "subnets", "subnet", (projectId) => (isServed ? [subnetView(projectId)] : []));
  for (const collection of EMPTY) registerCollection(http, collection, singularOf(collection), () => []);
  registerExtensions(http);
  registerQuotas(http, ports);
  http.route({
    method: ["POST", "PUT", "DELETE"],
    url: "/v2.0/*",
    handler: async () => {
      throw new Fault(
        403,
        "Berth has one network for all projects, which cannot be changed: of the Networking API, only ports, security groups and their rules can be made.",
      );
    },
  });
}

/** Registers the list of a collection and its single items, found by id. The views are those that the caller's project sees. */
function registerCollection(
  http: Http,
  collection: string,
  singular: string,
  viewsOf: (projectId: string) => readonly View[],
): void {
  const key = (collection.split("/").at(-1) ?? collection).replaceAll("-", "_");
  /** Admins name the project whose items they ask for. */
  const projectOf = (request: Parameters<typeof callOf>[0], query: NetworkQuery): string => {
    const { identity } = callOf(request);
    const asked = query.project_id ?? query.tenant_id;
    return identity.isAdmin && typeof asked === "string" ? asked : identity.projectId;
  };
  http.get(`/v2.0/${collection}`, LIST, async (request) => {
    const { query } = request;
    return { [key]: filteredViews(viewsOf(projectOf(request, query)), query) };
  });
  http.get(`/v2.0/${collection}/:id`, SHOW, async (request) => {
    const { id } = request.params;
    const found = viewsOf(projectOf(request, request.query)).find((view) => view.id === id);
    if (found === undefined) throw notFound(`${titleOf(singular)} ${id.slice(0, 100)} could not be found.`);
    return { [singular]: withFields(found, request.query) };
  });
}

const titleOf = (singular: string): string => singular.replace(/^./, (letter) => letter.toUpperCase());

const singularOf = (collection: string): string =>
  (collection.split("/").at(-1) ?? collection).replaceAll("-", "_").replace(/ies$/, "y").replace(/s$/, "");

function registerExtensions(http: Http): void {
  const views = Object.entries(EXTENSIONS).map(([alias, name]) => ({
    ...{ alias, name, description: name, updated: "2016-01-01T00:00:00-00:00", links: [] },
  }));
  http.get("/v2.0/extensions", LIST, async () => ({ extensions: views }));
  http.get("/v2.0/extensions/:id", SHOW, async (request) => {
    const { id } = request.params;
    const found = views.find(({ alias }) => alias === id);
    if (found === undefined) throw notFound(`Extension with alias ${id.slice(0, 100)} does not exist`);
    return { extension: found };
  });
}

/** Nothing here is limited. */
function registerQuotas(http: Http, ports: Pick<PortStore, "listPorts">): void {
  const unlimited = Object.fromEntries(QUOTAS.map((name) => [name, -1]));
  const project = (request: Parameters<typeof callOf>[0], id: string): string => {
    const { identity } = callOf(request);
    if (!identity.isAdmin && id !== identity.projectId)
      throw new Fault(403, "Only admins see the quotas of other projects.");
    return id;
  };
  for (const tail of ["", "/default"])
    http.get(`/v2.0/quotas/:id${tail}`, SHOW, async (request) => {
      project(request, request.params.id);
      return { quota: unlimited };
    });
  http.get("/v2.0/quotas/:id/details", SHOW, async (request) => {
    const projectId = project(request, request.params.id);
    const { length } = await ports.listPorts({ projectId, limit: 100_000 });
    const used = (name: string) => (name === "port" ? length : name === "security_group" ? 1 : 0);
    return {
      quota: Object.fromEntries(QUOTAS.map((name) => [name, { limit: -1, used: used(name), reserved: 0 }])),
    };
  });
}
