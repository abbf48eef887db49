import type { AskedBy } from "./networking.ts";

/** A rule that lets traffic pass to or from the ports of a security group. Source: Neutron's api-ref, "Security group rules". */
export interface SecurityGroupRule {
  readonly id: string;
  readonly groupId: string;
  readonly projectId: string;
  readonly direction: "ingress" | "egress";
  readonly etherType: "IPv4" | "IPv6";
  /** The name or number of the protocol; null for all. */
  readonly protocol: string | null;
  /** The lowest port, or the ICMP type; null for all. */
  readonly portMin: number | null;
  /** The highest port, or the ICMP code; null for all. */
  readonly portMax: number | null;
  /** The addresses of the other side as a prefix; null for all. */
  readonly remotePrefix: string | null;
  /** The group that the other side must be in; null for any. */
  readonly remoteGroupId: string | null;
  readonly description: string;
}

export interface SecurityGroup {
  readonly id: string;
  readonly projectId: string;
  readonly name: string;
  readonly description: string;
  readonly rules: readonly SecurityGroupRule[];
}

export type NewSecurityGroup = Pick<SecurityGroup, "projectId" | "name" | "description">;
export type NewSecurityGroupRule = Omit<SecurityGroupRule, "id">;

/** The groups that have all of the given values. */
export interface SecurityGroupFilter {
  readonly projectId?: string;
  readonly ids?: readonly string[];
  /** The groups are only named: their rules are not read, and each has none. */
  readonly withoutRules?: boolean;
}

/** Why a change was refused: nothing has been changed. */
export interface SecurityGroupRefusal {
  readonly kind: "gone" | "in-use" | "exists" | "over-quota" | "invalid" | "forbidden";
  readonly why: string;
}

/**
 * The security groups of the Networking service. The implementations (Neutron, Postgres, in-memory) pass test/contract/security-groups. Operating failures
 * of Neutron throw a `NetworkingError`, and those of a database the store's error.
 */
export interface SecurityGroups {
  /** The groups that the caller may see, with their rules. */
  groups(filter: SecurityGroupFilter, by: AskedBy): Promise<readonly SecurityGroup[]>;
  /** Makes a group that lets all traffic out. */
  createGroup(
    group: NewSecurityGroup,
    by: AskedBy,
  ): Promise<{ readonly kind: "created"; readonly group: SecurityGroup } | SecurityGroupRefusal>;
  updateGroup(
    id: string,
    values: { readonly name?: string; readonly description?: string },
    by: AskedBy,
  ): Promise<{ readonly kind: "updated"; readonly group: SecurityGroup } | SecurityGroupRefusal>;
  /** Deletes a group with its rules. Refuses one that a port is in, also if the port gets it at the same time. */
  deleteGroup(id: string, by: AskedBy): Promise<{ readonly kind: "deleted" } | SecurityGroupRefusal>;
  /** The rule, or null if it does not exist or the caller may not see it. */
  rule(id: string, by: AskedBy): Promise<SecurityGroupRule | null>;
  /**
   * Refuses a rule that lets pass exactly what another rule of the group does. Of equal rules that are added at the same time, Berth's own network adds one.
   * Neutron, which looks for equal rules before it writes one, may add all of them.
   */
  createRule(
    rule: NewSecurityGroupRule,
    by: AskedBy,
  ): Promise<{ readonly kind: "created"; readonly rule: SecurityGroupRule } | SecurityGroupRefusal>;
  deleteRule(id: string, by: AskedBy): Promise<{ readonly kind: "deleted" } | SecurityGroupRefusal>;
}

/** The security groups of Berth's own network. Everybody may see and change them here: callers are checked before. */
export interface OwnSecurityGroups extends SecurityGroups {
  /** Adds a group with its rules unless it exists. Repeatable. */
  ensureGroup(group: SecurityGroup): Promise<void>;
  /**
   * Gives a port of Berth's own these groups if it has the groups `from` now. Null stands for its project's default group. Of two calls with the same
   * `from`, one at most has an effect.
   */
  setPortGroups(
    portId: string,
    from: readonly string[] | null,
    to: readonly string[],
  ): Promise<"set" | "changed" | "no-group">;
}

/** Maximum numbers in a project on Berth's own network. */
export const OWN_GROUPS_MAX = 100;
export const OWN_RULES_MAX = 1_000;

/** The rules of a new group, as Neutron makes them: all traffic may go out. */
export function rulesOfNewGroup({ id, projectId }: Pick<SecurityGroup, "id" | "projectId">): NewSecurityGroupRule[] {
  return (["IPv4", "IPv6"] as const).map((etherType) => ({
    ...{ groupId: id, projectId, direction: "egress", etherType, protocol: null, portMin: null, portMax: null },
    ...{ remotePrefix: null, remoteGroupId: null, description: "" },
  }));
}

/** The refusal of a rule that the group has, as Neutron words it. Source: `SecurityGroupRuleExists` in neutron/extensions/securitygroup.py. */
export const ruleExists = (id: string): SecurityGroupRefusal => ({
  kind: "exists",
  why: `Security group rule already exists. Rule id is ${id}.`,
});

/** Whether two rules let the same traffic pass. */
export function isSameRule(one: NewSecurityGroupRule, other: NewSecurityGroupRule): boolean {
  const { direction, etherType, protocol, portMin, portMax, remotePrefix, remoteGroupId } = one;
  return (
    direction === other.direction &&
    etherType === other.etherType &&
    protocol === other.protocol &&
    portMin === other.portMin &&
    portMax === other.portMax &&
    remotePrefix === other.remotePrefix &&
    remoteGroupId === other.remoteGroupId
  );
}
