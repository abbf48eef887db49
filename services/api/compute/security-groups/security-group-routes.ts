import { Type } from "typebox";
import type { SecurityGroup } from "../../../../core/stores/security-groups.ts";
import { callOf, type KnownCall } from "../../http/call.ts";
import { canonicalUuid, storedSpelling } from "../../http/canonical-uuid.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest } from "../../http/fault.ts";
import { QueryReader } from "../../http/query-reader.ts";
import { AnyQuery, Uuid } from "../../http/schema.ts";
import type { SecurityGroupDesk } from "../../network/security-groups/security-group-desk.ts";
import { readRule } from "./read-rule.ts";
import { remoteGroupIds, ruleView, securityGroupViews } from "./security-group-views.ts";

/** The microversions that have the proxies. */
const of = (name: string) => ({ until: 35, rule: `os-security-groups:${name}` });
const IdParams = Type.Object({ id: Type.String() });

// Nova takes any other fields beside these.
const Text = Type.String({ maxLength: 255 });
const GroupBody = Type.Object({ security_group: Type.Object({ name: Text, description: Text }) });
const RuleBody = Type.Object({
  security_group_rule: Type.Object({
    parent_group_id: Uuid,
    group_id: Type.Optional(Type.Union([Uuid, Type.Null()])),
    from_port: Type.Optional(Type.Unknown()),
    to_port: Type.Optional(Type.Unknown()),
    ip_protocol: Type.Optional(Type.Unknown()),
    cidr: Type.Optional(Type.Unknown()),
  }),
});

/** Registers `/os-security-groups` and `/os-security-group-rules`, the proxies of the Networking API, which end after 2.35 as upstream. */
export function registerSecurityGroupRoutes(
  http: Http,
  desk: SecurityGroupDesk,
  { pageMax }: { readonly pageMax: number },
): void {
  const list = {
    config: { ...of("get"), query: { limit: 1, offset: 1, all_tenants: 1 } },
    schema: { querystring: AnyQuery },
  };
  http.get("/os-security-groups", list, async (request) => {
    const call = callOf(request);
    const query = new QueryReader(request.query);
    const seesAll = call.identity.isAdmin && query.text("all_tenants") !== undefined;
    const offset = Number(query.text("offset") ?? 0);
    if (!Number.isSafeInteger(offset) || offset < 0)
      throw badRequest("offset param must be an integer and not negative");
    const found = await desk.list(call, seesAll ? null : call.identity.projectId);
    return {
      security_groups: await securityGroupsShown(desk, call, found.slice(offset, offset + query.limit(pageMax))),
    };
  });

  http.post("/os-security-groups", { config: of("create"), schema: { body: GroupBody } }, async (request) => {
    const { name, description } = request.body.security_group;
    return shownAlone(desk, callOf(request), await desk.create(callOf(request), { name, description }));
  });

  const one = { schema: { params: IdParams } };
  http.get("/os-security-groups/:id", { config: of("show"), ...one }, async (request) => {
    const call = callOf(request);
    return shownAlone(desk, call, await desk.find(call, groupId(request.params.id)));
  });

  const update = { config: of("update"), schema: { params: IdParams, body: GroupBody } };
  http.put("/os-security-groups/:id", update, async (request) => {
    const call = callOf(request);
    const { name, description } = request.body.security_group;
    return shownAlone(desk, call, await desk.update(call, groupId(request.params.id), { name, description }));
  });

  http.delete("/os-security-groups/:id", { config: of("delete"), ...one }, async (request, reply) => {
    await desk.remove(callOf(request), groupId(request.params.id), 400);
    return reply.code(202).send();
  });
  registerRules(http, desk);
}

function registerRules(http: Http, desk: SecurityGroupDesk): void {
  const create = { config: of("rule:create"), schema: { body: RuleBody } };
  http.post("/os-security-group-rules", create, async (request) => {
    const call = callOf(request);
    const asked = request.body.security_group_rule;
    const group = await desk.find(call, storedSpelling(asked.parent_group_id));
    const remote = asked.group_id == null ? null : await desk.find(call, storedSpelling(asked.group_id));
    const rule = await desk.addRule(call, readRule(asked, group, remote?.id ?? null), 400);
    return { security_group_rule: ruleView(rule, new Map(remote === null ? [] : [[remote.id, remote]])) };
  });

  const remove = { config: of("rule:delete"), schema: { params: IdParams } };
  http.delete("/os-security-group-rules/:id", remove, async (request, reply) => {
    await desk.removeRule(callOf(request), groupId(request.params.id));
    return reply.code(202).send();
  });
}

/** Returns groups as the caller sees them, with the names of the groups that their rules name. */
export async function securityGroupsShown(desk: SecurityGroupDesk, call: KnownCall, groups: readonly SecurityGroup[]) {
  return securityGroupViews(groups, await desk.named(call, remoteGroupIds(groups)));
}

async function shownAlone(desk: SecurityGroupDesk, call: KnownCall, group: SecurityGroup) {
  const [view] = await securityGroupsShown(desk, call, [group]);
  return { security_group: view };
}

function groupId(asked: string): string {
  const id = canonicalUuid(asked);
  if (id === null) throw badRequest("Security group id should be uuid");
  return id;
}
