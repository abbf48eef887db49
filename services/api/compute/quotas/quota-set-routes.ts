import { Type } from "typebox";
import {
  limitsOfProject,
  limitsOfUser,
  type QuotaLimits,
  type QuotaResource,
  type SetLimits,
} from "../../../../core/stores/api/quota-limits.ts";
import type { QuotaScope } from "../../../../core/stores/api/quota-store.ts";
import { callOf, type KnownCall, requireRule } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest } from "../../http/fault.ts";
import { type QueryParameters, QueryReader } from "../../http/query-reader.ts";
import { refuseUnknownProject } from "../../http/refuse-unknown-project.ts";
import { AnyQuery, readFlag } from "../../http/schema.ts";
import type { QuotaDeps } from "./quota-deps.ts";
import { QuotaDetailAnswer, QuotaSetAnswer, readLimits, UpdateQuotaSetBody } from "./quota-schemas.ts";
import { pickResources, resourcesOfSets } from "./quota-view.ts";
import { readQuotaUsage } from "./read-quota-usage.ts";
import { refuseOutOfRange } from "./settable-range.ts";

const IdParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 255 }) });
const QUERY: QueryParameters = { user_id: 1 };

/** `/os-quota-sets/{project}`: the limits of a project, or with `user_id` those of a user in it. Admins change them. */
export function registerQuotaSetRoutes(http: Http, deps: QuotaDeps): void {
  const { store, limits, isUnknownProject } = deps;
  const withQuery = { params: IdParams, querystring: AnyQuery };

  const show = { config: { query: QUERY, rule: null }, schema: { ...withQuery, response: { 200: QuotaSetAnswer } } };
  http.get("/os-quota-sets/:id", show, async (request) => {
    const call = callOf(request);
    const scope = scopeOf(call, request.params.id, request.query, "show");
    await refuseUnknownProject(isUnknownProject, scope.projectId, call);
    const found = effective(await store.limits(scope.projectId), limits.defaults, scope);
    return { quota_set: { id: scope.projectId, ...shown(call, found) } };
  });

  http.get(
    "/os-quota-sets/:id/detail",
    { config: { query: QUERY, rule: null }, schema: { ...withQuery, response: { 200: QuotaDetailAnswer } } },
    async (request) => {
      const call = callOf(request);
      const scope = scopeOf(call, request.params.id, request.query, "detail");
      await refuseUnknownProject(isUnknownProject, scope.projectId, call);
      const found = effective(await store.limits(scope.projectId), limits.defaults, scope);
      const used = await readQuotaUsage(deps, scope);
      const detail = (resource: QuotaResource) => ({
        limit: found[resource],
        in_use: used[resource] ?? 0,
        reserved: 0,
      });
      return { quota_set: { id: scope.projectId, ...pickResources(resourcesOfSets(call.minor), detail) } };
    },
  );

  http.get(
    "/os-quota-sets/:id/defaults",
    { config: { rule: null }, schema: { ...withQuery, response: { 200: QuotaSetAnswer } } },
    async (request) => {
      const call = callOf(request);
      requireRule(call, "os-quota-sets:defaults", { projectId: request.params.id });
      await refuseUnknownProject(isUnknownProject, request.params.id, call);
      const defaults = { ...limits.defaults, ...(await store.classLimits("default")) };
      return { quota_set: { id: request.params.id, ...shown(call, defaults) } };
    },
  );

  http.put(
    "/os-quota-sets/:id",
    {
      config: { query: QUERY, rule: null },
      schema: { ...withQuery, body: UpdateQuotaSetBody, response: { 200: QuotaSetAnswer } },
    },
    async (request) => {
      const call = callOf(request);
      const scope = scopeOf(call, request.params.id, request.query, "update");
      await refuseUnknownProject(isUnknownProject, scope.projectId, call);
      const asked = request.body.quota_set as Readonly<Record<string, unknown>>;
      const read = readLimits(asked, resourcesOfSets(call.minor));
      const wanted = store.isChangeable ? read : {};
      const set = await store.limits(scope.projectId);
      if (readFlag((asked.force as boolean | string | undefined) ?? false) !== true)
        refuseOutOfRange(wanted, { set, defaults: limits.defaults, scope, used: await readQuotaUsage(deps, scope) });
      await store.setLimits(scope, wanted);
      limits.forget(scope.projectId);
      return { quota_set: shown(call, effective(await store.limits(scope.projectId), limits.defaults, scope)) };
    },
  );
  registerDeletion(http, deps);
}

/** A quota set of a project that Keystone no longer knows can be deleted, too. */
function registerDeletion(http: Http, { store, limits }: Pick<QuotaDeps, "store" | "limits">): void {
  const deletion = { config: { query: QUERY, rule: null }, schema: { params: IdParams, querystring: AnyQuery } };
  http.delete("/os-quota-sets/:id", deletion, async (request, reply) => {
    const scope = scopeOf(callOf(request), request.params.id, request.query, "delete");
    await store.forgetLimits(scope);
    limits.forget(scope.projectId);
    return reply.code(202).send();
  });
}

/** Reads the project and the user that a call is about. Refuses callers whom the policy does not let do this to the project (403). */
function scopeOf(
  call: KnownCall,
  projectId: string,
  raw: Readonly<Record<string, string | readonly string[]>>,
  rule: string,
): QuotaScope {
  requireRule(call, `os-quota-sets:${rule}`, { projectId });
  const query = new QueryReader(raw);
  const userId = query.all("user_id")[0] ?? "";
  if (userId.length > 255) throw badRequest("Invalid input for query parameters user_id. It is longer than 255.");
  return { projectId, userId: userId === "" ? null : userId };
}

function effective(set: SetLimits, defaults: QuotaLimits, { userId }: QuotaScope): QuotaLimits {
  return userId === null ? limitsOfProject(set, defaults) : limitsOfUser(set, defaults, userId);
}

function shown({ minor }: KnownCall, limits: QuotaLimits): Record<string, number> {
  return pickResources(resourcesOfSets(minor), (resource) => limits[resource]);
}
