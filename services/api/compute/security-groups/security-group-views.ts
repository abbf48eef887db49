import type { SecurityGroup, SecurityGroupRule } from "../../../../core/stores/security-groups.ts";

/** The groups that rules name, by id. */
type RemoteGroups = ReadonlyMap<string, Pick<SecurityGroup, "name" | "projectId">>;

/** The ids of the groups that the rules of these groups name, other than the groups themselves. */
export function remoteGroupIds(groups: readonly SecurityGroup[]): readonly string[] {
  const own = new Set(groups.map(({ id }) => id));
  const named = groups.flatMap(({ rules }) =>
    rules.filter(isShown).flatMap(({ remoteGroupId }) => remoteGroupId ?? []),
  );
  return [...new Set(named)].filter((id) => !own.has(id));
}

/**
 * Returns security groups as the Compute API shows them: with their rules for incoming traffic, except those that name a group which the caller cannot
 * see. Source: `_format_security_group` in nova/api/openstack/compute/security_groups.py
 */
export function securityGroupViews(groups: readonly SecurityGroup[], others: RemoteGroups) {
  const remote = new Map([...others, ...groups.map((group) => [group.id, group] as const)]);
  return groups.map(({ id, projectId, name, description, rules }) => ({
    ...{ id, name, description, tenant_id: projectId },
    rules: rules.filter((rule) => isShown(rule) && isKnown(rule, remote)).map((rule) => ruleView(rule, remote)),
  }));
}

export function ruleView(rule: SecurityGroupRule, remote: RemoteGroups) {
  const { protocol, portMin, portMax } = rule;
  const isOpen = protocol !== null && portMin === null && portMax === null;
  const hasPorts = ["TCP", "UDP"].includes(protocol?.toUpperCase() ?? "");
  const group = remote.get(rule.remoteGroupId ?? "");
  return {
    id: rule.id,
    parent_group_id: rule.groupId,
    ip_protocol: protocol,
    from_port: isOpen ? (hasPorts ? 1 : -1) : portMin,
    to_port: isOpen ? (hasPorts ? 65_535 : -1) : portMax,
    group: group === undefined ? {} : { name: group.name, tenant_id: group.projectId },
    ip_range: rule.remoteGroupId === null ? { cidr: rule.remotePrefix ?? "0.0.0.0/0" } : {},
  };
}

/** The Compute API has no rules for outgoing traffic. */
const isShown = ({ direction }: SecurityGroupRule): boolean => direction === "ingress";

const isKnown = ({ remoteGroupId }: SecurityGroupRule, remote: RemoteGroups): boolean =>
  remoteGroupId === null || remote.has(remoteGroupId);
