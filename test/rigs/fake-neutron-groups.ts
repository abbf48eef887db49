import { ruleBody } from "../../adapters/openstack/security-group-documents.ts";
import type { AskedBy } from "../../core/stores/networking.ts";
import type {
  NewSecurityGroupRule,
  SecurityGroup,
  SecurityGroupRefusal,
  SecurityGroupRule,
  SecurityGroups,
} from "../../core/stores/security-groups.ts";
import type { FakeAnswer } from "./fake-neighbour.ts";
import { neutronRefusal } from "./neutron-refusal.ts";

type Body = ReturnType<typeof JSON.parse>;

const STATUSES: Readonly<Record<SecurityGroupRefusal["kind"], readonly [number, string]>> = {
  gone: [404, "SecurityGroupNotFound"],
  "in-use": [409, "SecurityGroupInUse"],
  exists: [409, "SecurityGroupRuleExists"],
  "over-quota": [409, "OverQuota"],
  invalid: [400, "InvalidInput"],
  forbidden: [403, "PolicyNotAuthorized"],
};

/** Answers calls to Neutron's security groups and their rules; null for other calls. */
export async function answerGroups(
  groups: SecurityGroups,
  method: string,
  { pathname, searchParams: query }: URL,
  { body, by }: { readonly body: Body; readonly by: AskedBy },
): Promise<FakeAnswer | null> {
  const [, collection, id = ""] = /^\/v2\.0\/(security-group(?:-rule)?s)(?:\/([^/]+))?$/.exec(pathname) ?? [];
  switch (`${method} ${collection}${id === "" ? "" : "/id"}`) {
    case "GET security-groups": {
      const filter = {
        ...(query.has("id") && { ids: query.getAll("id") }),
        ...(query.has("tenant_id") && { projectId: query.get("tenant_id")! }),
      };
      const fields = query.getAll("fields");
      const shown = (group: SecurityGroup) =>
        Object.fromEntries(
          Object.entries(groupDocument(group)).filter(([name]) => !fields.length || fields.includes(name)),
        );
      return { status: 200, body: { security_groups: (await groups.groups(filter, by)).map(shown) } };
    }
    case "POST security-groups": {
      const { name, description, tenant_id: projectId } = body.security_group;
      const outcome = await groups.createGroup({ name, description, projectId }, by);
      if (outcome.kind !== "created") return refused(outcome);
      return { status: 201, body: { security_group: groupDocument(outcome.group) } };
    }
    case "PUT security-groups/id": {
      const outcome = await groups.updateGroup(id, body.security_group, by);
      if (outcome.kind !== "updated") return refused(outcome);
      return { status: 200, body: { security_group: groupDocument(outcome.group) } };
    }
    case "DELETE security-groups/id":
      return deleted(await groups.deleteGroup(id, by));
    case "GET security-group-rules/id": {
      const rule = await groups.rule(id, by);
      if (rule === null) return refused({ kind: "gone", why: `Security group rule ${id} does not exist` });
      return { status: 200, body: { security_group_rule: ruleDocument(rule) } };
    }
    case "POST security-group-rules": {
      const outcome = await groups.createRule(newRuleOf(body.security_group_rule), by);
      if (outcome.kind !== "created") return refused(outcome);
      return { status: 201, body: { security_group_rule: ruleDocument(outcome.rule) } };
    }
    case "DELETE security-group-rules/id":
      return deleted(await groups.deleteRule(id, by));
    default:
      return null;
  }
}

const deleted = (outcome: { readonly kind: "deleted" } | SecurityGroupRefusal): FakeAnswer =>
  outcome.kind === "deleted" ? { status: 204 } : refused(outcome);

function refused({ kind, why }: SecurityGroupRefusal): FakeAnswer {
  const [status, type] = STATUSES[kind];
  return neutronRefusal(status, type, why);
}

const ruleDocument = (rule: SecurityGroupRule) => ({ id: rule.id, ...ruleBody(rule), project_id: rule.projectId });

const groupDocument = ({ id, name, description, projectId, rules }: SecurityGroup) => ({
  ...{ id, name, description, tenant_id: projectId, project_id: projectId },
  security_group_rules: rules.map(ruleDocument),
});

const newRuleOf = (rule: Body): NewSecurityGroupRule => ({
  ...{ groupId: rule.security_group_id, projectId: rule.tenant_id, direction: rule.direction },
  ...{ etherType: rule.ethertype, protocol: rule.protocol, portMin: rule.port_range_min, portMax: rule.port_range_max },
  ...{ remotePrefix: rule.remote_ip_prefix, remoteGroupId: rule.remote_group_id, description: rule.description },
});
