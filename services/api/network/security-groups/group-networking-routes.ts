import { isIP } from "node:net";
import { Type } from "typebox";
import type { SecurityGroup, SecurityGroupRule } from "../../../../core/stores/security-groups.ts";
import { callOf, type KnownCall } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import type { Http } from "../../http/create-http.ts";
import { Fault } from "../../http/fault.ts";
import { AnyQuery, Uuid } from "../../http/schema.ts";
import { filteredViews, type NetworkQuery, type View, withFields } from "../filtered-views.ts";
import type { SecurityGroupDesk } from "./security-group-desk.ts";

const Text = Type.String({ maxLength: 255 });
const Owner = { project_id: Type.Optional(Text), tenant_id: Type.Optional(Text) };
const strict = { additionalProperties: false };
const NewGroup = Type.Object(
  {
    name: Type.Optional(Text),
    description: Type.Optional(Text),
    stateful: Type.Optional(Type.Literal(true)),
    ...Owner,
  },
  strict,
);
const GroupValues = Type.Object({ name: Type.Optional(Text), description: Type.Optional(Text) }, strict);
const Port = Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: 65_535 }), Type.Null()]));
const NewRule = Type.Object(
  {
    security_group_id: Uuid,
    direction: Type.Union([Type.Literal("ingress"), Type.Literal("egress")]),
    ethertype: Type.Optional(Type.Union([Type.Literal("IPv4"), Type.Literal("IPv6"), Type.Null()])),
    protocol: Type.Optional(Type.Union([Text, Type.Integer({ minimum: 0, maximum: 255 }), Type.Null()])),
    port_range_min: Port,
    port_range_max: Port,
    remote_ip_prefix: Type.Optional(Type.Union([Text, Type.Null()])),
    remote_group_id: Type.Optional(Type.Union([Uuid, Type.Null()])),
    remote_address_group_id: Type.Optional(Type.Null()),
    description: Type.Optional(Text),
    ...Owner,
  },
  strict,
);
const IdParams = Type.Object({ id: Type.String() });
const SHOW = { schema: { querystring: AnyQuery, params: IdParams } };

/**
 * Registers `/v2.0/security-groups` and `/v2.0/security-group-rules` of the Networking API for Berth's own network. Groups and rules are kept and shown.
 * Nothing enforces them.
 *
 * Source: https://docs.openstack.org/api-ref/network/v2/#security-groups-security-groups
 */
export function registerGroupNetworking(http: Http, desk: SecurityGroupDesk): void {
  registerGroups(http, desk);
  registerRules(http, desk);
}

function registerGroups(http: Http, desk: SecurityGroupDesk): void {
  http.get("/v2.0/security-groups", { schema: { querystring: AnyQuery } }, async (request) => {
    const found = await desk.list(callOf(request), projectOf(callOf(request), request.query));
    return { security_groups: filteredViews(found.map(groupView), request.query) };
  });
  http.get("/v2.0/security-groups/:id", SHOW, async (request) => {
    const group = await desk.find(callOf(request), storedSpelling(request.params.id));
    return { security_group: withFields(groupView(group), request.query) };
  });
  const create = { schema: { body: Type.Object({ security_group: NewGroup }, strict) } };
  http.post("/v2.0/security-groups", create, async (request, reply) => {
    const call = callOf(request);
    const { name = "", description = "", ...owner } = request.body.security_group;
    refuseOtherOwner(call, owner);
    reply.code(201);
    return { security_group: groupView(await desk.create(call, { name, description })) };
  });
  const update = { schema: { params: IdParams, body: Type.Object({ security_group: GroupValues }, strict) } };
  http.put("/v2.0/security-groups/:id", update, async (request) => {
    const id = storedSpelling(request.params.id);
    return { security_group: groupView(await desk.update(callOf(request), id, request.body.security_group)) };
  });
  http.delete("/v2.0/security-groups/:id", { schema: { params: IdParams } }, async (request, reply) => {
    await desk.remove(callOf(request), storedSpelling(request.params.id), 409);
    return reply.code(204).send();
  });
}

function registerRules(http: Http, desk: SecurityGroupDesk): void {
  http.get("/v2.0/security-group-rules", { schema: { querystring: AnyQuery } }, async (request) => {
    const groups = await desk.list(callOf(request), projectOf(callOf(request), request.query));
    return {
      security_group_rules: filteredViews(
        groups.flatMap(({ rules }) => rules.map(ruleView)),
        request.query,
      ),
    };
  });
  http.get("/v2.0/security-group-rules/:id", SHOW, async (request) => {
    const rule = await desk.findRule(callOf(request), storedSpelling(request.params.id));
    return { security_group_rule: withFields(ruleView(rule), request.query) };
  });
  const create = { schema: { body: Type.Object({ security_group_rule: NewRule }, strict) } };
  http.post("/v2.0/security-group-rules", create, async (request, reply) => {
    const call = callOf(request);
    const { security_group_rule: asked } = request.body;
    const { id: groupId, projectId } = await desk.find(call, storedSpelling(asked.security_group_id));
    const { remote_group_id: remote, remote_ip_prefix: prefix, protocol } = asked;
    const remoteGroupId = remote == null ? null : (await desk.find(call, storedSpelling(remote))).id;
    const etherType = asked.ethertype ?? (isIP(prefix?.split("/", 1)[0] ?? "") === 6 ? "IPv6" : "IPv4");
    const rule = await desk.addRule(
      call,
      {
        ...{ groupId, projectId, direction: asked.direction, etherType, remoteGroupId, remotePrefix: prefix ?? null },
        protocol: protocol == null ? null : String(protocol),
        ...{ portMin: asked.port_range_min ?? null, portMax: asked.port_range_max ?? null },
        description: asked.description ?? "",
      },
      409,
    );
    reply.code(201);
    return { security_group_rule: ruleView(rule) };
  });
  http.delete("/v2.0/security-group-rules/:id", { schema: { params: IdParams } }, async (request, reply) => {
    await desk.removeRule(callOf(request), storedSpelling(request.params.id));
    return reply.code(204).send();
  });
}

/** Admins name the project whose groups they ask for. */
function projectOf({ identity }: KnownCall, query: NetworkQuery): string {
  const asked = query.project_id ?? query.tenant_id;
  return identity.isAdmin && typeof asked === "string" ? asked : identity.projectId;
}

function refuseOtherOwner(
  { identity }: KnownCall,
  { project_id, tenant_id }: { readonly project_id?: string; readonly tenant_id?: string },
): void {
  const owner = project_id ?? tenant_id ?? identity.projectId;
  if (owner !== identity.projectId)
    throw new Fault(403, "A security group is made for the caller's own project: leave out project_id.");
}

const TIMES = { revision_number: 1, tags: [] };

const groupView = ({ id, name, description, projectId, rules }: SecurityGroup): View => ({
  ...{ id, name, description, stateful: true, project_id: projectId, tenant_id: projectId, shared: false, ...TIMES },
  security_group_rules: rules.map(ruleView),
});

const ruleView = (rule: SecurityGroupRule): View => ({
  ...{ id: rule.id, security_group_id: rule.groupId, direction: rule.direction, ethertype: rule.etherType },
  ...{ protocol: rule.protocol, port_range_min: rule.portMin, port_range_max: rule.portMax },
  ...{ remote_ip_prefix: rule.remotePrefix, remote_group_id: rule.remoteGroupId, remote_address_group_id: null },
  ...{ project_id: rule.projectId, tenant_id: rule.projectId, description: rule.description, ...TIMES },
});
