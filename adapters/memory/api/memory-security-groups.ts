import { randomUUID } from "node:crypto";
import { compare } from "../../../core/ledger/ledger-state.ts";
import type { AskedBy } from "../../../core/stores/networking.ts";
import {
  isSameRule,
  type NewSecurityGroup,
  type NewSecurityGroupRule,
  OWN_GROUPS_MAX,
  OWN_RULES_MAX,
  type OwnSecurityGroups,
  ruleExists,
  rulesOfNewGroup,
  type SecurityGroup,
  type SecurityGroupFilter,
  type SecurityGroupRefusal,
  type SecurityGroupRule,
} from "../../../core/stores/security-groups.ts";

const GONE = { kind: "gone", why: "The security group does not exist." } as const;

/** The ports that may be in the groups. */
export interface MemberPorts {
  isInUse(groupId: string): boolean;
  setGroups(portId: string, from: readonly string[] | null, to: readonly string[]): boolean;
}

/** The in-process twin of the tables of security groups, and of those of Neutron, where a caller's token is the id of its project. */
export class MemorySecurityGroups implements OwnSecurityGroups {
  readonly #groups = new Map<string, SecurityGroup>();
  readonly #ports: MemberPorts;

  constructor(ports: MemberPorts) {
    this.#ports = ports;
  }

  async groups(filter: SecurityGroupFilter, { callerToken }: AskedBy): Promise<readonly SecurityGroup[]> {
    const { projectId, ids, withoutRules = false } = filter;
    return [...this.#groups.values()]
      .filter((group) => callerToken === null || group.projectId === callerToken)
      .filter((group) => projectId === undefined || group.projectId === projectId)
      .filter(({ id }) => ids?.includes(id) ?? true)
      .toSorted((a, b) => compare(a.projectId, b.projectId) || compare(a.name, b.name) || compare(a.id, b.id))
      .map((group) => (withoutRules ? { ...group, rules: [] } : group));
  }

  async ensureGroup(group: SecurityGroup): Promise<void> {
    if (!this.#groups.has(group.id)) this.#groups.set(group.id, group);
  }

  async createGroup(
    group: NewSecurityGroup,
  ): Promise<{ readonly kind: "created"; readonly group: SecurityGroup } | SecurityGroupRefusal> {
    const own = [...this.#groups.values()].filter(({ projectId }) => projectId === group.projectId);
    if (own.length >= OWN_GROUPS_MAX)
      return { kind: "over-quota", why: `Quota exceeded for resources: ['security_group'] (${OWN_GROUPS_MAX}).` };
    const id = randomUUID();
    const rules = rulesOfNewGroup({ ...group, id }).map((rule) => ({ ...rule, id: randomUUID() }));
    const made = { ...group, id, rules };
    this.#groups.set(id, made);
    return { kind: "created", group: made };
  }

  async updateGroup(
    id: string,
    values: { readonly name?: string; readonly description?: string },
  ): Promise<{ readonly kind: "updated"; readonly group: SecurityGroup } | SecurityGroupRefusal> {
    const group = this.#groups.get(id);
    if (group === undefined) return GONE;
    const changed = { ...group, ...values };
    this.#groups.set(id, changed);
    return { kind: "updated", group: changed };
  }

  async deleteGroup(id: string): Promise<{ readonly kind: "deleted" } | SecurityGroupRefusal> {
    if (!this.#groups.has(id)) return GONE;
    if (this.#ports.isInUse(id)) return { kind: "in-use", why: `Security Group ${id} in use.` };
    this.#groups.delete(id);
    for (const group of this.#groups.values()) this.#keepRules(group, ({ remoteGroupId }) => remoteGroupId !== id);
    return { kind: "deleted" };
  }

  async rule(id: string, { callerToken }: AskedBy): Promise<SecurityGroupRule | null> {
    const isSeen = ({ projectId }: SecurityGroupRule) => callerToken === null || projectId === callerToken;
    return this.#rules().find((rule) => rule.id === id && isSeen(rule)) ?? null;
  }

  async createRule(
    rule: NewSecurityGroupRule,
  ): Promise<{ readonly kind: "created"; readonly rule: SecurityGroupRule } | SecurityGroupRefusal> {
    const group = this.#groups.get(rule.groupId);
    if (group === undefined || !this.#groups.has(rule.remoteGroupId ?? rule.groupId)) return GONE;
    if (this.#rules().filter(({ projectId }) => projectId === rule.projectId).length >= OWN_RULES_MAX)
      return { kind: "over-quota", why: `Quota exceeded for resources: ['security_group_rule'] (${OWN_RULES_MAX}).` };
    const same = group.rules.find((other) => isSameRule(rule, other));
    if (same !== undefined) return ruleExists(same.id);
    const made = { ...rule, id: randomUUID() };
    this.#groups.set(group.id, { ...group, rules: [...group.rules, made] });
    return { kind: "created", rule: made };
  }

  async deleteRule(id: string): Promise<{ readonly kind: "deleted" } | SecurityGroupRefusal> {
    const rule = this.#rules().find((one) => one.id === id);
    const group = this.#groups.get(rule?.groupId ?? "");
    if (group === undefined) return { kind: "gone", why: `Security group rule ${id} does not exist` };
    this.#keepRules(group, (one) => one.id !== id);
    return { kind: "deleted" };
  }

  async setPortGroups(
    portId: string,
    from: readonly string[] | null,
    to: readonly string[],
  ): Promise<"set" | "changed" | "no-group"> {
    const ids = [...new Set(to)];
    if (!ids.every((id) => this.#groups.has(id))) return "no-group";
    return this.#ports.setGroups(portId, from, ids) ? "set" : "changed";
  }

  #rules(): SecurityGroupRule[] {
    return [...this.#groups.values()].flatMap(({ rules }) => rules);
  }

  #keepRules(group: SecurityGroup, isKept: (rule: SecurityGroupRule) => boolean): void {
    this.#groups.set(group.id, { ...group, rules: group.rules.filter(isKept) });
  }
}
