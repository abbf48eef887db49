import type { NewSecurityGroupRule, SecurityGroup, SecurityGroupRule } from "../../core/stores/security-groups.ts";
import { type DocumentFields, documentFields, documentId, textField } from "./read-document.ts";

/** Reads a security group as Neutron shows it. Throws a `NetworkingError` if it has no id. */
export function securityGroupOf(document: unknown): SecurityGroup {
  const group = documentFields(document);
  const rules = Array.isArray(group.security_group_rules) ? group.security_group_rules : [];
  return {
    id: documentId(group, "security group"),
    projectId: textField(group.project_id ?? group.tenant_id),
    name: textField(group.name),
    description: textField(group.description),
    rules: rules.map(securityGroupRuleOf),
  };
}

/** Reads a rule as Neutron shows it. Throws a `NetworkingError` if it has no id. */
export function securityGroupRuleOf(document: unknown): SecurityGroupRule {
  const rule = documentFields(document);
  return {
    id: documentId(rule, "security group rule"),
    groupId: textField(rule.security_group_id),
    projectId: textField(rule.project_id ?? rule.tenant_id),
    direction: rule.direction === "egress" ? "egress" : "ingress",
    etherType: rule.ethertype === "IPv6" ? "IPv6" : "IPv4",
    protocol: typeof rule.protocol === "number" ? String(rule.protocol) : textField(rule.protocol) || null,
    portMin: typeof rule.port_range_min === "number" ? rule.port_range_min : null,
    portMax: typeof rule.port_range_max === "number" ? rule.port_range_max : null,
    remotePrefix: textField(rule.remote_ip_prefix) || null,
    remoteGroupId: textField(rule.remote_group_id) || null,
    description: textField(rule.description),
  };
}

export const ruleBody = (rule: NewSecurityGroupRule): DocumentFields => ({
  ...{ security_group_id: rule.groupId, tenant_id: rule.projectId, direction: rule.direction },
  ...{ ethertype: rule.etherType, protocol: rule.protocol, port_range_min: rule.portMin, port_range_max: rule.portMax },
  ...{ remote_ip_prefix: rule.remotePrefix, remote_group_id: rule.remoteGroupId, description: rule.description },
});
