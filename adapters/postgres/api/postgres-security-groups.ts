import { randomUUID } from "node:crypto";
import type { Pool, PoolClient } from "pg";
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
import { onlyAsked } from "../client/only-asked.ts";
import { runStored } from "../client/run-stored.ts";
import { onlyUuids, queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import {
  GROUP_COLUMNS,
  type GroupRow,
  groupOfRow,
  NAME_COLUMNS,
  RULE_COLUMNS,
  type RuleRow,
  ruleOfRow,
  rulesJson,
} from "./security-group-rows.ts";

const GONE = { kind: "gone", why: "The security group does not exist." } as const;

/** The security groups of Berth's own network, in the API database. Throws `StoreError`. */
export class PostgresSecurityGroups implements OwnSecurityGroups {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async groups({ projectId = "", ids, withoutRules = false }: SecurityGroupFilter): Promise<readonly SecurityGroup[]> {
    const columns = { project_id: projectId === "" ? null : projectId, id: ids === undefined ? null : onlyUuids(ids) };
    const { where, ...statement } = onlyAsked(withoutRules ? "security_group_names" : "security_groups", columns);
    const rows = await queryStored<GroupRow>(this.#pool, {
      ...statement,
      text: `select ${withoutRules ? NAME_COLUMNS : GROUP_COLUMNS} from security_groups g ${where} order by g.project_id, g.name, g.id`,
    });
    return rows.map(groupOfRow);
  }

  async ensureGroup(group: SecurityGroup): Promise<void> {
    const [known] = await this.groups({ ids: [group.id], withoutRules: true });
    if (known !== undefined) return;
    await this.#transact("ensure_security_group", (client) => insertGroup(client, group, group.rules));
  }

  createGroup(
    group: NewSecurityGroup,
  ): Promise<{ readonly kind: "created"; readonly group: SecurityGroup } | SecurityGroupRefusal> {
    return this.#transact("create_security_group", async (client) => {
      const count = await countOf(client, "security_groups", group.projectId);
      if (count >= OWN_GROUPS_MAX)
        return { kind: "over-quota", why: `Quota exceeded for resources: ['security_group'] (${OWN_GROUPS_MAX}).` };
      const id = randomUUID();
      const rules = rulesOfNewGroup({ ...group, id }).map((rule) => ({ ...rule, id: randomUUID() }));
      const made = { ...group, id, rules };
      await insertGroup(client, made, rules);
      return { kind: "created", group: made };
    });
  }

  async updateGroup(
    id: string,
    { name = null, description = null }: { readonly name?: string | null; readonly description?: string | null },
  ): Promise<{ readonly kind: "updated"; readonly group: SecurityGroup } | SecurityGroupRefusal> {
    const rows = await queryStored<GroupRow>(this.#pool, {
      name: "update_security_group",
      text: `update security_groups g set name = coalesce($2, g.name), description = coalesce($3, g.description)
        where g.id = any ($1::uuid[]) returning ${GROUP_COLUMNS}`,
      values: [onlyUuids([id]), name, description],
    });
    const [row] = rows;
    return row === undefined ? GONE : { kind: "updated", group: groupOfRow(row) };
  }

  /** The lock waits for calls that give a port the group, and the statement after it sees what they have written. */
  deleteGroup(id: string): Promise<{ readonly kind: "deleted" } | SecurityGroupRefusal> {
    return this.#transact("delete_security_group", async (client) => {
      const ids = onlyUuids([id]);
      const locked = await queryRows(client, {
        name: "lock_security_group",
        text: "select id from security_groups where id = any ($1::uuid[]) for update",
        values: [ids],
      });
      if (locked.length === 0) return GONE;
      const [port] = await queryRows<{ id: string }>(client, {
        name: "port_of_security_group",
        text: "select id from ports where security_groups @> $1::uuid[] limit 1",
        values: [ids],
      });
      if (port !== undefined) return { kind: "in-use", why: `Security Group ${id} in use.` };
      await queryRows(client, {
        name: "delete_locked_security_group",
        text: "delete from security_groups where id = any ($1::uuid[])",
        values: [ids],
      });
      return { kind: "deleted" };
    });
  }

  async rule(id: string): Promise<SecurityGroupRule | null> {
    const rows = await queryStored<RuleRow>(this.#pool, {
      name: "security_group_rule",
      text: `select ${RULE_COLUMNS} from security_group_rules where id = any ($1::uuid[])`,
      values: [onlyUuids([id])],
    });
    return rows[0] === undefined ? null : ruleOfRow(rows[0]);
  }

  createRule(
    rule: NewSecurityGroupRule,
  ): Promise<{ readonly kind: "created"; readonly rule: SecurityGroupRule } | SecurityGroupRefusal> {
    return this.#transact("create_security_group_rule", async (client) => {
      const { groupId, remoteGroupId } = rule;
      const groupIds = [...new Set([groupId, remoteGroupId ?? groupId])];
      if (!(await keepGroups(client, groupIds))) return GONE;
      const count = await countOf(client, "security_group_rules", rule.projectId);
      if (count >= OWN_RULES_MAX)
        return { kind: "over-quota", why: `Quota exceeded for resources: ['security_group_rule'] (${OWN_RULES_MAX}).` };
      const made = { ...rule, id: randomUUID() };
      const added = await insertRules(client, [made]);
      if (added === 1) return { kind: "created", rule: made };
      const same = (await readRules(client, groupId)).find((other) => isSameRule(rule, other));
      // Another call may have deleted it meanwhile.
      return ruleExists(same?.id ?? "unknown");
    });
  }

  async deleteRule(id: string): Promise<{ readonly kind: "deleted" } | SecurityGroupRefusal> {
    const rows = await queryStored(this.#pool, {
      name: "delete_security_group_rule",
      text: "delete from security_group_rules where id = any ($1::uuid[]) returning id",
      values: [onlyUuids([id])],
    });
    return rows.length > 0 ? { kind: "deleted" } : { kind: "gone", why: `Security group rule ${id} does not exist` };
  }

  async setPortGroups(
    portId: string,
    from: readonly string[] | null,
    to: readonly string[],
  ): Promise<"set" | "changed" | "no-group"> {
    return this.#transact("set_port_groups", async (client) => {
      const ids = [...new Set(to)];
      if (!(await keepGroups(client, ids))) return "no-group";
      const rows = await queryRows(client, {
        name: "set_port_groups",
        text: `update ports set security_groups = $3::uuid[]
          where id = any ($1::uuid[]) and security_groups is not distinct from $2::uuid[] returning id`,
        values: [onlyUuids([portId]), from, ids],
      });
      return rows.length > 0 ? "set" : "changed";
    });
  }

  #transact<Result>(name: string, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    return runStored(name, () => inTransaction(this.#pool, work));
  }
}

/** Two calls at once may both see one place left, so that a project has one item more: the limit only bounds the tables. */
async function countOf(
  client: PoolClient,
  table: "security_groups" | "security_group_rules",
  projectId: string,
): Promise<number> {
  const text = `select count(*)::int as count from ${table} where project_id = $1`;
  const [row] = await queryRows<{ count: number }>(client, { name: `count_${table}`, text, values: [projectId] });
  return row?.count ?? 0;
}

async function insertGroup(
  client: PoolClient,
  { id, projectId, name, description }: SecurityGroup,
  rules: readonly SecurityGroupRule[],
): Promise<void> {
  const rows = await queryRows(client, {
    name: "insert_security_group",
    text: `insert into security_groups (id, project_id, name, description) values ($1, $2, $3, $4)
      on conflict (id) do nothing returning id`,
    values: [id, projectId, name, description],
  });
  if (rows.length > 0) await insertRules(client, rules);
}

async function readRules(client: PoolClient, groupId: string): Promise<readonly SecurityGroupRule[]> {
  const rows = await queryRows<RuleRow>(client, {
    name: "security_group_rules_of",
    text: `select ${RULE_COLUMNS} from security_group_rules where group_id = any ($1::uuid[])`,
    values: [onlyUuids([groupId])],
  });
  return rows.map(ruleOfRow);
}

/** Returns how many of the rules were not there yet. */
async function insertRules(client: PoolClient, rules: readonly SecurityGroupRule[]): Promise<number> {
  const rows = await queryRows(client, {
    name: "insert_security_group_rules",
    text: `insert into security_group_rules (id, group_id, project_id, direction, ether_type, protocol, port_min, port_max,
        remote_prefix, remote_group_id, description)
      select id, group_id, project_id, direction, ether_type, protocol, port_min, port_max, remote_prefix, remote_group_id, description
      from jsonb_to_recordset($1::jsonb) as r (id uuid, group_id uuid, project_id text, direction text, ether_type text,
        protocol text, port_min int, port_max int, remote_prefix text, remote_group_id uuid, description text)
      on conflict do nothing returning id`,
    values: [rulesJson(rules)],
  });
  return rows.length;
}

/** Keeps the groups from being deleted until the transaction ends. Returns false when one of them does not exist. */
async function keepGroups(client: PoolClient, ids: readonly string[]): Promise<boolean> {
  const kept = await queryRows(client, {
    name: "keep_security_groups",
    text: "select id from security_groups where id = any ($1::uuid[]) order by id for key share",
    values: [onlyUuids(ids)],
  });
  return kept.length === ids.length;
}
