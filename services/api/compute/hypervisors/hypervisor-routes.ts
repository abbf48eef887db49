import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { Clock } from "../../../../runtime/clock.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import { callOf } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest, Fault } from "../../http/fault.ts";
import { nextLink, placeOf } from "../../http/links.ts";
import { AnyQuery } from "../../http/schema.ts";
import { findHypervisor, hostsNamed } from "./find-hypervisor.ts";
import {
  HypervisorAnswer,
  HypervisorDetailsAnswer,
  HypervisorListAnswer,
  HypervisorUptimeAnswer,
  StatisticsAnswer,
} from "./hypervisor-schemas.ts";
import {
  hypervisorBriefView,
  hypervisorDetailView,
  hypervisorUptime,
  NO_USAGE_FROM_MINOR,
  statisticsView,
} from "./hypervisor-view.ts";
import { listHosts } from "./list-hosts.ts";
import {
  asksForServers,
  HYPERVISOR_LIST_QUERY,
  HYPERVISOR_QUERY,
  type HypervisorPage,
  type ListedHypervisor,
  listHypervisors,
  PARAMETERS_FROM_MINOR,
  withServersOf,
} from "./list-hypervisors.ts";

export interface HypervisorRouteOptions {
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
}

interface HypervisorDeps {
  readonly cells: Cells;
  readonly clock: Clock;
}

const IdParams = Type.Object({ id: Type.String() });

/** `/os-hypervisors`: admins only. Source: Nova's api-ref, "Hypervisors". */
export function registerHypervisorRoutes(http: Http, deps: HypervisorDeps, options: HypervisorRouteOptions): void {
  registerLists(http, deps, options);
  registerOldRoutes(http, deps);

  const one = { params: IdParams, querystring: AnyQuery, response: { 200: HypervisorAnswer } };
  const ofOne = { query: HYPERVISOR_QUERY, queryStrictFrom: PARAMETERS_FROM_MINOR, rule: "os-hypervisors:show" };
  http.get("/os-hypervisors/:id", { config: ofOne, schema: one }, async (request) => {
    const { minor } = callOf(request);
    const withServers = asksForServers(request.query, minor);
    const known = await findHypervisor(deps.cells, request.params.id, minor);
    const [listed] = await withServersOf(deps.cells, [known], { minor, withServers });
    return { hypervisor: { ...hypervisorDetailView(known, minor, deps.clock.now()), ...serversOf(listed) } };
  });
}

function registerLists(http: Http, { cells, clock }: HypervisorDeps, options: HypervisorRouteOptions): void {
  const linksOf = (request: FastifyRequest, raw: Record<string, string | string[]>, { next }: HypervisorPage) => {
    if (next === null) return {};
    const path = request.routeOptions.url?.slice(options.prefix.length + 1) ?? "";
    return { hypervisors_links: [nextLink(placeOf(request, options.prefix, options.publicUrl), path, raw, next)] };
  };

  const brief = { querystring: AnyQuery, response: { 200: HypervisorListAnswer } };
  const ofBrief = { query: HYPERVISOR_LIST_QUERY, queryStrictFrom: PARAMETERS_FROM_MINOR, rule: "os-hypervisors:list" };
  http.get("/os-hypervisors", { config: ofBrief, schema: brief }, async (request) => {
    const { minor } = callOf(request);
    const page = await listHypervisors(cells, request.query, { minor, pageMax: options.pageMax, withUsage: false });
    const hypervisors = page.hypervisors.map((one) => ({
      ...hypervisorBriefView(one.known, minor),
      ...serversOf(one),
    }));
    return { hypervisors, ...linksOf(request, request.query, page) };
  });

  const detail = { querystring: AnyQuery, response: { 200: HypervisorDetailsAnswer } };
  const ofDetail = {
    query: HYPERVISOR_LIST_QUERY,
    queryStrictFrom: PARAMETERS_FROM_MINOR,
    rule: "os-hypervisors:list-detail",
  };
  http.get("/os-hypervisors/detail", { config: ofDetail, schema: detail }, async (request) => {
    const { minor } = callOf(request);
    const withUsage = minor < NO_USAGE_FROM_MINOR;
    const page = await listHypervisors(cells, request.query, { minor, pageMax: options.pageMax, withUsage });
    const nowMs = clock.now();
    const hypervisors = page.hypervisors.map((one) => ({
      ...hypervisorDetailView(one.known, minor, nowMs),
      ...serversOf(one),
    }));
    return { hypervisors, ...linksOf(request, request.query, page) };
  });
}

/** Registers the routes that later microversions no longer have. */
function registerOldRoutes(http: Http, { cells, clock }: HypervisorDeps): void {
  const statistics = {
    config: { until: NO_USAGE_FROM_MINOR - 1, rule: "os-hypervisors:statistics" },
    schema: { response: { 200: StatisticsAnswer } },
  };
  http.get("/os-hypervisors/statistics", statistics, async () => {
    return { hypervisor_statistics: statisticsView((await listHosts(cells, { withUsage: true })).hosts) };
  });

  for (const name of ["search", "servers"] as const) {
    const schema = { params: IdParams, querystring: AnyQuery, response: { 200: HypervisorListAnswer } };
    const config = { until: PARAMETERS_FROM_MINOR - 1, rule: `os-hypervisors:${name}` };
    http.get(`/os-hypervisors/:id/${name}`, { config, schema }, async (request) => {
      const { minor } = callOf(request);
      const hosts = hostsNamed((await listHosts(cells, { withUsage: false })).hosts, request.params.id);
      const listed = await withServersOf(cells, hosts, { minor, withServers: name === "servers" });
      return { hypervisors: listed.map((one) => ({ ...hypervisorBriefView(one.known, minor), ...serversOf(one) })) };
    });
  }

  const uptime = { params: IdParams, querystring: AnyQuery, response: { 200: HypervisorUptimeAnswer } };
  const config = { until: NO_USAGE_FROM_MINOR - 1, rule: "os-hypervisors:uptime" };
  http.get("/os-hypervisors/:id/uptime", { config, schema: uptime }, async (request) => {
    const { minor } = callOf(request);
    const known = await findHypervisor(cells, request.params.id, minor);
    if (!known.host.up) throw badRequest(`Compute service of ${known.host.name} is unavailable at this time.`);
    const text = hypervisorUptime(known, clock.now());
    // The answer of Nova for a driver that knows no uptime.
    if (text === null) throw new Fault(501, "The requested functionality is not supported.");
    return { hypervisor: { ...hypervisorBriefView(known, minor), uptime: text } };
  });
}

function serversOf(listed: ListedHypervisor | undefined) {
  return listed?.servers === undefined ? {} : { servers: [...listed.servers] };
}
