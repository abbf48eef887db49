import { limitsOfProject, type QuotaResource } from "../../../../core/stores/api/quota-limits.ts";
import { callOf, requireRule } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { type QueryParameters, QueryReader } from "../../http/query-reader.ts";
import { AnyQuery } from "../../http/schema.ts";
import type { QuotaDeps } from "./quota-deps.ts";
import { LimitsAnswer } from "./quota-schemas.ts";
import { resourcesOfSets } from "./quota-view.ts";
import { readQuotaUsage } from "./read-quota-usage.ts";

/** The names of limits in this resource. Some resources have none. */
const MAXIMA: readonly (readonly [string, QuotaResource])[] = [
  ["maxTotalInstances", "instances"],
  ["maxTotalCores", "cores"],
  ["maxTotalRAMSize", "ram"],
  ["maxTotalKeypairs", "key_pairs"],
  ["maxTotalFloatingIps", "floating_ips"],
  ["maxServerMeta", "metadata_items"],
  ["maxImageMeta", "metadata_items"],
  ["maxPersonality", "injected_files"],
  ["maxPersonalitySize", "injected_file_content_bytes"],
  ["maxSecurityGroups", "security_groups"],
  ["maxSecurityGroupRules", "security_group_rules"],
  ["maxServerGroups", "server_groups"],
  ["maxServerGroupMembers", "server_group_members"],
];
const USED: readonly (readonly [string, QuotaResource])[] = [
  ["totalInstancesUsed", "instances"],
  ["totalCoresUsed", "cores"],
  ["totalRAMUsed", "ram"],
  ["totalFloatingIpsUsed", "floating_ips"],
  ["totalSecurityGroupsUsed", "security_groups"],
  ["totalServerGroupsUsed", "server_groups"],
];
const IMAGE_META_UNTIL = 38;
const QUERY: QueryParameters = { tenant_id: 1 };

/** `/limits`: the limits of the caller's project with its use, or for an admin those of `tenant_id`. */
export function registerLimitsRoutes(http: Http, deps: QuotaDeps): void {
  const show = {
    config: { query: QUERY, rule: "limits" },
    schema: { querystring: AnyQuery, response: { 200: LimitsAnswer } },
  };
  http.get("/limits", show, async (request) => {
    const call = callOf(request);
    const query = new QueryReader(request.query);
    const asked = query.text("tenant_id");
    if (asked !== undefined) requireRule(call, "limits:other_project");
    const projectId = asked ?? call.identity.projectId;
    const limits = limitsOfProject(await deps.store.limits(projectId), deps.limits.defaults);
    const used = await readQuotaUsage(deps, { projectId, userId: null });
    const resources = resourcesOfSets(call.minor);
    const maxima = MAXIMA.filter(
      ([name, resource]) => resources.includes(resource) && (name !== "maxImageMeta" || call.minor <= IMAGE_META_UNTIL),
    ).map(([name, resource]) => [name, limits[resource]] as const);
    const uses = USED.filter(([, resource]) => resources.includes(resource)).map(
      ([name, resource]) => [name, used[resource] ?? 0] as const,
    );
    return { limits: { rate: [], absolute: Object.fromEntries([...maxima, ...uses]) } };
  });
}
