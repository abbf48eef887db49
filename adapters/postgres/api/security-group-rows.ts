import type { SecurityGroup, SecurityGroupRule } from "../../../core/stores/security-groups.ts";

export interface RuleRow {
  id: string;
  group_id: string;
  project_id: string;
  direction: SecurityGroupRule["direction"];
  ether_type: SecurityGroupRule["etherType"];
  protocol: string | null;
  port_min: number | null;
  port_max: number | null;
  remote_prefix: string | null;
  remote_group_id: string | null;
  description: string;
}

export interface GroupRow {
  id: string;
  project_id: string;
  name: string;
  description: string;
  rules: RuleRow[];
}

export const RULE_COLUMNS =
  "id, group_id, project_id, direction, ether_type, protocol, port_min, port_max, remote_prefix, remote_group_id, description";

/** The columns of a group `g` with its rules, oldest first. */
export const GROUP_COLUMNS = `g.id, g.project_id, g.name, g.description,
  coalesce((select jsonb_agg(to_jsonb(r) order by r.created_at, r.id) from security_group_rules r where r.group_id = g.id), '[]') as rules`;

/** The columns of a group whose rules are not asked for. */
export const NAME_COLUMNS = "g.id, g.project_id, g.name, g.description, '[]'::jsonb as rules";

export const groupOfRow = (row: GroupRow): SecurityGroup => ({
  ...{ id: row.id, projectId: row.project_id, name: row.name, description: row.description },
  rules: row.rules.map(ruleOfRow),
});

export const ruleOfRow = (row: RuleRow): SecurityGroupRule => ({
  ...{ id: row.id, groupId: row.group_id, projectId: row.project_id, direction: row.direction },
  ...{ etherType: row.ether_type, protocol: row.protocol, portMin: row.port_min, portMax: row.port_max },
  ...{ remotePrefix: row.remote_prefix, remoteGroupId: row.remote_group_id, description: row.description },
});

export const rulesJson = (rules: readonly SecurityGroupRule[]): string =>
  JSON.stringify(
    rules.map((rule) => ({
      ...{ id: rule.id, group_id: rule.groupId, project_id: rule.projectId, direction: rule.direction },
      ...{ ether_type: rule.etherType, protocol: rule.protocol, port_min: rule.portMin, port_max: rule.portMax },
      ...{ remote_prefix: rule.remotePrefix, remote_group_id: rule.remoteGroupId, description: rule.description },
    })),
  );
