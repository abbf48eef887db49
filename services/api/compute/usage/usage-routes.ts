import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { Server } from "../../../../core/tasks/server.ts";
import { callOf, requireRule } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { nextLink, placeOf } from "../../http/links.ts";
import { AnyQuery } from "../../http/schema.ts";
import { findUsages, type UsageDeps } from "./find-usages.ts";
import { readUsageQuery, USAGE_LIST_QUERY, USAGE_QUERY, type UsageQuery } from "./read-usage-query.ts";
import { projectUsageViews } from "./usage-view.ts";

export interface UsageRouteOptions {
  readonly prefix: string;
  readonly publicUrl: string | null;
  readonly pageMax: number;
}

const RULE = "os-simple-tenant-usage";
const IdParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 255 }) });
type RawQuery = Record<string, string | string[]>;

/**
 * `/os-simple-tenant-usage`: how long the servers of projects ran in a period, and what that makes in VCPUs, memory and disk. Admins see all
 * projects, and everybody their own. Source: Nova's api-ref, "Usage reports".
 */
export function registerUsageRoutes(http: Http, deps: UsageDeps, options: UsageRouteOptions): void {
  const read = (request: FastifyRequest, raw: RawQuery, ofOneProject: boolean) =>
    readUsageQuery(raw, callOf(request), { nowMs: deps.clock.now(), pageMax: options.pageMax, ofOneProject });
  const linkTo = (request: FastifyRequest, raw: RawQuery, page: { query: UsageQuery; marker: string; path: string }) =>
    nextLink(placeOf(request, options.prefix, options.publicUrl), page.path, raw, {
      ...{ marker: page.marker, limit: page.query.limit },
    });

  const list = { config: { query: USAGE_LIST_QUERY, rule: `${RULE}:list` }, schema: { querystring: AnyQuery } };
  http.get("/os-simple-tenant-usage", list, async (request) => {
    const query = read(request, request.query, false);
    const { servers, nextMarker: marker } = await findUsages(deps, null, query);
    const named = query.isDetailed ? await withNames(deps, servers) : servers;
    const usages = { tenant_usages: projectUsageViews(named, query, deps.clock.now()) };
    if (!query.hasPages || marker === null) return usages;
    return { ...usages, tenant_usages_links: [linkTo(request, request.query, { query, marker, path: RULE })] };
  });

  const ofOne = { config: { query: USAGE_QUERY, rule: null }, schema: { params: IdParams, querystring: AnyQuery } };
  http.get("/os-simple-tenant-usage/:id", ofOne, async (request) => {
    const { id } = request.params;
    requireRule(callOf(request), `${RULE}:show`, { projectId: id });
    const query = read(request, request.query, true);
    const { servers, nextMarker: marker } = await findUsages(deps, id, query);
    const [usage = {}] = projectUsageViews(await withNames(deps, servers), query, deps.clock.now());
    if (!query.hasPages || marker === null) return { tenant_usage: usage };
    const path = `${RULE}/${encodeURIComponent(id)}`;
    return { tenant_usage: usage, tenant_usage_links: [linkTo(request, request.query, { query, marker, path })] };
  });
}

/** Returns the servers with the names that users have given them since. */
async function withNames({ store }: UsageDeps, servers: readonly Server[]): Promise<readonly Server[]> {
  const records = await store.requests(servers.map(({ uuid }) => uuid));
  const names = new Map(records.map((record) => [record.serverUuid, record.spec.name]));
  return servers.map((server) => ({
    ...server,
    spec: { ...server.spec, name: names.get(server.uuid) ?? server.spec.name },
  }));
}
