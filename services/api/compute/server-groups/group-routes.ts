import { randomUUID } from "node:crypto";
import { Type } from "typebox";
import type { ServerGroupRecord } from "../../../../core/stores/api/server-group-store.ts";
import { callOf, type KnownCall, mayDo, requireRulesFor } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { Fault, notFound } from "../../http/fault.ts";
import { type QueryParameters, QueryReader } from "../../http/query-reader.ts";
import { AnyQuery } from "../../http/schema.ts";
import { readUuidLike } from "../../placement/uuids.ts";
import type { ServerGroupsPort } from "../../ports.ts";
import { countMax, type ProjectLimits } from "../quotas/project-limits.ts";
import { CreateGroupBody, GroupAnswer, GroupListAnswer } from "./group-schemas.ts";
import { groupView, readGroup } from "./read-group.ts";

export interface GroupRouteOptions {
  readonly pageMax: number;
  readonly limits: ProjectLimits;
}

const IdParams = Type.Object({ id: Type.String() });
const QUERY: QueryParameters = { all_projects: 1, limit: 1, offset: 1 };

/** `/os-server-groups`. Groups are their project's; an admin may see and delete all. */
export function registerGroupRoutes(http: Http, store: ServerGroupsPort, options: GroupRouteOptions): void {
  http.get(
    "/os-server-groups",
    {
      config: { query: QUERY, rule: "os-server-groups:index" },
      schema: { querystring: AnyQuery, response: { 200: GroupListAnswer } },
    },
    async (request) => {
      const call = callOf(request);
      const query = new QueryReader(request.query);
      const ofAll = query.text("all_projects") !== undefined && mayDo(call, "os-server-groups:index:all_projects");
      const groups = await store.groups({
        projectId: ofAll ? null : call.identity.projectId,
        limit: query.limit(options.pageMax),
        offset: query.wholeNumber("offset") ?? 0,
      });
      return { server_groups: groups.map((group) => groupView(group, call.minor)) };
    },
  );

  http.post(
    "/os-server-groups",
    { config: { rule: "os-server-groups:create" }, schema: { body: CreateGroupBody, response: { 200: GroupAnswer } } },
    async (request) => {
      const call = callOf(request);
      const { projectId, userId } = call.identity;
      const group = { uuid: randomUUID(), projectId, userId, ...readGroup(request.body, call.minor) };
      const { server_groups: groupsMax } = await options.limits.ofProject(projectId);
      if ((await store.createGroup(group, countMax(groupsMax))) === "too-many")
        throw new Fault(403, "Quota exceeded, too many server groups.");
      return { server_group: groupView({ ...group, members: [] }, call.minor) };
    },
  );

  http.get(
    "/os-server-groups/:id",
    { config: { rule: "os-server-groups:show" }, schema: { params: IdParams, response: { 200: GroupAnswer } } },
    async (request) => {
      const call = callOf(request);
      return { server_group: groupView(await findGroup(store, call, request.params.id), call.minor) };
    },
  );

  http.delete(
    "/os-server-groups/:id",
    { config: { rule: "os-server-groups:delete" }, schema: { params: IdParams } },
    async (request, reply) => {
      const { uuid } = await findGroup(store, callOf(request), request.params.id);
      if (!(await store.deleteGroup(uuid))) throw groupNotFound(uuid);
      return reply.code(204).send();
    },
  );
}

async function findGroup(store: ServerGroupsPort, call: KnownCall, id: string): Promise<ServerGroupRecord> {
  const uuid = readUuidLike(id);
  const group = uuid === null ? null : await store.group(uuid);
  // Nova answers 403 for a group of another project, which shows that the group exists. Here the answer is the same as for an
  // unknown group.
  const { isAdmin, projectId } = call.identity;
  if (group === null || !(isAdmin || group.projectId === projectId)) throw groupNotFound(id);
  requireRulesFor(call, group.projectId);
  return group;
}

function groupNotFound(id: string): Fault {
  return notFound(`Instance group ${id.slice(0, 100)} could not be found.`);
}
