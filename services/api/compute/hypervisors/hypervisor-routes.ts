import { Type } from "typebox";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { callOf, type KnownCall, requireAdmin } from "../../http/call.ts";
import { canonicalUuid } from "../../http/canonical-uuid.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest, Fault, notFound } from "../../http/fault.ts";
import { nextLink, type Place, placeOf } from "../../http/links.ts";
import { QueryReader } from "../../http/query-reader.ts";
import { AnyQuery, LinksSchema, NullableString } from "../../http/schema.ts";
import { hypervisorBriefView, hypervisorDetailView, hypervisorId, statisticsView } from "./hypervisor-view.ts";
import { type KnownHost, listHosts } from "./list-hosts.ts";

const Id = Type.Unsafe<string | number>({});

const Brief = { id: Id, hypervisor_hostname: Type.String(), state: Type.String(), status: Type.String() };
const Sums = {
  vcpus: Type.Integer(),
  vcpus_used: Type.Integer(),
  memory_mb: Type.Integer(),
  memory_mb_used: Type.Integer(),
  free_ram_mb: Type.Integer(),
  local_gb: Type.Integer(),
  local_gb_used: Type.Integer(),
  free_disk_gb: Type.Integer(),
  disk_available_least: Type.Integer(),
  current_workload: Type.Integer(),
  running_vms: Type.Integer(),
};
const Detail = Type.Object({
  ...Brief,
  hypervisor_type: Type.String(),
  hypervisor_version: Type.Integer(),
  host_ip: NullableString,
  service: Type.Object({ id: Id, host: Type.String(), disabled_reason: NullableString }),
  uptime: Type.Optional(NullableString),
  cpu_info: Type.Optional(Type.Unsafe<string | object>({})),
  ...Type.Partial(Type.Object(Sums)).properties,
});
export interface HypervisorRouteOptions {
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
}

/** `/os-hypervisors`: admins only. */
export function registerHypervisorRoutes(http: Http, cells: Cells, options: HypervisorRouteOptions): void {
  registerLists(http, cells, options);
  registerUptime(http, cells);

  const Statistics = Type.Object({ hypervisor_statistics: Type.Object({ count: Type.Integer(), ...Sums }) });
  http.get("/os-hypervisors/statistics", { schema: { response: { 200: Statistics } } }, async (request) => {
    const call = callOf(request);
    requireAdmin(call, "os-hypervisors:statistics");
    if (call.minor >= 88) throw notFound("The resource could not be found.");
    return { hypervisor_statistics: statisticsView((await listHosts(cells, { withUsage: true })).hosts) };
  });

  const One = {
    params: Type.Object({ id: Type.String() }),
    querystring: AnyQuery,
    response: { 200: Type.Object({ hypervisor: Detail }) },
  };
  http.get("/os-hypervisors/:id", { schema: One }, async (request) => {
    const call = callOf(request);
    requireAdmin(call, "os-hypervisors:show");
    refuseServers(new QueryReader(request.query));
    return { hypervisor: hypervisorDetailView(await findHost(cells, request.params.id, call), call.minor) };
  });
}

/** The first microversion in which hypervisors show their uptime, in place of a route for it. */
const UPTIME_SHOWN_FROM = 88;

/** Answers as Nova does for a driver that knows no uptime, which agents do not report. */
function registerUptime(http: Http, cells: Cells): void {
  http.get(
    "/os-hypervisors/:id/uptime",
    { schema: { params: Type.Object({ id: Type.String() }), querystring: AnyQuery } },
    async (request) => {
      const call = callOf(request);
      if (call.minor >= UPTIME_SHOWN_FROM) throw notFound("The resource could not be found.");
      requireAdmin(call, "os-hypervisors:uptime");
      const { host } = await findHost(cells, request.params.id, call);
      if (!host.up) throw badRequest(`Compute service of ${host.name} is unavailable at this time.`);
      throw new Fault(501, "The requested functionality is not supported.");
    },
  );
}

const LIST_PARAMETERS: ReadonlySet<string> = new Set([
  "limit",
  "marker",
  "hypervisor_hostname_pattern",
  "with_servers",
]);
const NONE: ReadonlySet<string> = new Set();

function registerLists(http: Http, cells: Cells, options: HypervisorRouteOptions): void {
  const list = async (
    request: Parameters<typeof callOf>[0],
    raw: Record<string, string | string[]>,
    how: { readonly path: string; readonly action: string; readonly detail: boolean },
  ) => {
    const call = callOf(request);
    requireAdmin(call, how.action);
    const { hosts } = await listHosts(cells, { withUsage: how.detail });
    const place = placeOf(request, options.prefix, options.publicUrl);
    return { minor: call.minor, ...pageOf(hosts, raw, { call, place, path: how.path, pageMax: options.pageMax }) };
  };

  const BriefList = Type.Object({
    hypervisors: Type.Array(Type.Object(Brief)),
    hypervisors_links: Type.Optional(LinksSchema),
  });
  http.get("/os-hypervisors", { schema: { querystring: AnyQuery, response: { 200: BriefList } } }, async (request) => {
    const how = { path: "os-hypervisors", action: "os-hypervisors:list", detail: false };
    const { hosts, links, minor } = await list(request, request.query, how);
    return { hypervisors: hosts.map((known) => hypervisorBriefView(known, minor)), ...links };
  });

  const DetailList = Type.Object({ hypervisors: Type.Array(Detail), hypervisors_links: Type.Optional(LinksSchema) });
  http.get(
    "/os-hypervisors/detail",
    { schema: { querystring: AnyQuery, response: { 200: DetailList } } },
    async (request) => {
      const how = { path: "os-hypervisors/detail", action: "os-hypervisors:list-detail", detail: true };
      const { hosts, links, minor } = await list(request, request.query, how);
      return { hypervisors: hosts.map((known) => hypervisorDetailView(known, minor)), ...links };
    },
  );
}

interface PageOptions {
  readonly call: KnownCall;
  readonly place: Place;
  readonly path: string;
  readonly pageMax: number;
}

function pageOf(
  hosts: readonly KnownHost[],
  raw: Record<string, string | string[]>,
  { call, place, path, pageMax }: PageOptions,
) {
  const query = new QueryReader(raw);
  query.refuseOthers({ known: LIST_PARAMETERS, unsupported: NONE, minor: call.minor });
  refuseServers(query);
  const pattern = query.text("hypervisor_hostname_pattern");
  if (pattern !== undefined) {
    const matching = hosts.filter(({ host }) => host.name.includes(pattern));
    if (matching.length === 0) throw notFound(`No hypervisor matching '${pattern.slice(0, 100)}' could be found.`);
    return { hosts: matching, links: {} };
  }
  const limit = query.limit(pageMax);
  const marker = query.text("marker");
  const from =
    marker === undefined ? 0 : hosts.findIndex(({ host }) => String(hypervisorId(host, call.minor)) === marker) + 1;
  if (marker !== undefined && from === 0) throw badRequest(`marker [${marker.slice(0, 100)}] not found`);
  const page = hosts.slice(from, from + limit);
  const last = page.at(-1);
  if (last === undefined || page.length < limit) return { hosts: page, links: {} };
  const next = nextLink(place, path, raw, { marker: String(hypervisorId(last.host, call.minor)), limit });
  return { hosts: page, links: { hypervisors_links: [next] } };
}

function refuseServers(query: QueryReader): void {
  if (query.flag("with_servers")) throw badRequest("with_servers is not supported: list servers by host instead.");
}

async function findHost(cells: Cells, id: string, call: KnownCall): Promise<KnownHost> {
  const missing = () => notFound(`Hypervisor with ID '${id.slice(0, 100)}' could not be found.`);
  if (call.minor >= 53 && canonicalUuid(id) === null) throw badRequest(`Invalid uuid ${id.slice(0, 100)}`);
  const { hosts } = await listHosts(cells, { withUsage: true });
  const wanted = call.minor >= 53 ? canonicalUuid(id) : id;
  const found = hosts.find(({ host }) => String(hypervisorId(host, call.minor)) === wanted);
  if (found === undefined) throw missing();
  return found;
}
