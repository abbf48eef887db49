import type { Pool, PoolClient } from "pg";
import type {
  NewServerGroup,
  PinOutcome,
  ServerGroupQuery,
  ServerGroupRecord,
  ServerGroupStore,
} from "../../../core/stores/api/server-group-store.ts";
import type { ServerGroupPolicy } from "../../../core/tasks/group-rule.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { onlyAsked } from "../client/only-asked.ts";
import { runStored } from "../client/run-stored.ts";
import { onlyUuids, queryRows, queryStored } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";

interface GroupRow {
  readonly uuid: string;
  readonly name: string;
  readonly project_id: string;
  readonly user_id: string;
  readonly policy: ServerGroupPolicy;
  readonly max_server_per_host: number | null;
  readonly members: readonly string[];
}

const SELECT_GROUPS = `select g.uuid, g.name, g.project_id, g.user_id, g.policy, g.max_server_per_host, array(
    select s.server_uuid::text from server_group_servers s where s.group_uuid = g.uuid order by s.server_uuid
  ) as members
  from server_groups g`;

/** Members whose requests were never accepted, or ended this long ago, are deleted when other servers join. */
const FORGOTTEN_AFTER = "1 hour";

/** Server groups in the API database. Lock order: a group's row before its members'. */
export class PostgresServerGroupStore implements ServerGroupStore {
  readonly #pool: Pool;

  /** The caller keeps the pool and ends it. */
  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** An advisory lock on a hash of the project serialises its calls, since a new group has no row yet that could be locked. */
  createGroup(group: NewServerGroup, groupsMax: number): Promise<"created" | "too-many"> {
    return this.#write("create_server_group", async (client) => {
      await queryRows(client, {
        name: "lock_server_groups",
        text: "select pg_advisory_xact_lock(1735553392, hashtext($1))",
        values: [group.projectId],
      });
      const rows = await queryRows(client, {
        name: "create_server_group",
        text: `insert into server_groups (uuid, name, project_id, user_id, policy, max_server_per_host)
          select $1, $2, $3, $4, $5, $6 where (select count(*) from server_groups where project_id = $3) < $7
          returning uuid`,
        values: [
          group.uuid,
          group.name,
          group.projectId,
          group.userId,
          group.policy,
          group.maxServerPerHost,
          groupsMax,
        ],
      });
      return rows.length > 0 ? "created" : "too-many";
    });
  }

  async groups({ projectId, limit, offset }: ServerGroupQuery): Promise<readonly ServerGroupRecord[]> {
    const { where, ...statement } = onlyAsked("server_groups", { project_id: projectId }, [limit, offset]);
    const text = `${SELECT_GROUPS} ${where} order by g.created_at, g.uuid limit $1 offset $2`;
    const rows = await queryStored<GroupRow>(this.#pool, { ...statement, text });
    return rows.map(recordOf);
  }

  async group(uuid: string): Promise<ServerGroupRecord | null> {
    if (onlyUuids([uuid]).length === 0) return null;
    const [row] = await queryStored<GroupRow>(this.#pool, {
      name: "server_group",
      text: `${SELECT_GROUPS} where g.uuid = $1`,
      values: [uuid],
    });
    return row === undefined ? null : recordOf(row);
  }

  async countGroups(projectId: string): Promise<number> {
    const [row] = await queryStored<{ groups: number }>(this.#pool, {
      name: "count_server_groups",
      text: "select count(*)::int as groups from server_groups where project_id = $1",
      values: [projectId],
    });
    return row?.groups ?? 0;
  }

  async deleteGroup(uuid: string): Promise<boolean> {
    if (onlyUuids([uuid]).length === 0) return false;
    const rows = await queryStored(this.#pool, {
      name: "delete_server_group",
      text: "delete from server_groups where uuid = $1 returning uuid",
      values: [uuid],
    });
    return rows.length > 0;
  }

  addMembers(
    groupUuid: string,
    serverUuids: readonly string[],
    membersMax: number,
  ): Promise<"added" | "unknown" | "too-many"> {
    return this.#write("add_group_members", async (client) => {
      if (!(await lockGroup(client, groupUuid))) return "unknown";
      const servers = textArrayLiteral(serverUuids);
      await queryRows(client, {
        name: "forget_group_members",
        text: `delete from server_group_members m
          where m.group_uuid = $1 and m.added_at < now() - interval '${FORGOTTEN_AFTER}'
            and not exists (select from server_group_servers s where s.server_uuid = m.server_uuid)`,
        values: [groupUuid],
      });
      const [room] = await queryRows<{ enough: boolean }>(client, {
        name: "count_group_members",
        text: `select count(*) + $3 <= $4 as enough from server_group_members m left join requests r using (server_uuid)
          where m.group_uuid = $1 and m.server_uuid <> all ($2::uuid[])
            and coalesce(r.state, 'accepted') not in ('cancelled', 'deleted')`,
        values: [groupUuid, servers, serverUuids.length, membersMax],
      });
      if (!room?.enough) return "too-many";
      await queryRows(client, {
        name: "add_group_members",
        text: `insert into server_group_members (server_uuid, group_uuid)
          select s.uuid, $1 from unnest($2::uuid[]) as s (uuid) order by s.uuid on conflict do nothing`,
        values: [groupUuid, servers],
      });
      return "added";
    });
  }

  pinCell(pin: {
    readonly groupUuid: string;
    readonly serverUuid: string;
    readonly cell: string;
  }): Promise<PinOutcome> {
    return this.#write("pin_group_cell", async (client): Promise<PinOutcome> => {
      if (!(await lockGroup(client, pin.groupUuid))) return { kind: "pinned" };
      const [other] = await queryRows<{ cell: string; servers: string[] }>(client, {
        name: "group_cell",
        text: `select s.cell, array_agg(s.server_uuid::text order by s.server_uuid) as servers from server_group_servers s
          where s.group_uuid = $1 and s.server_uuid <> $2 and s.cell <> $3 and s.state <> 'failed'
          group by s.cell order by s.cell limit 1`,
        values: [pin.groupUuid, pin.serverUuid, pin.cell],
      });
      if (other !== undefined) return { kind: "elsewhere", ...other };
      await queryRows(client, {
        name: "pin_group_cell",
        text: "update server_group_members set cell = $2 where server_uuid = $1 and cell is distinct from $2",
        values: [pin.serverUuid, pin.cell],
      });
      return { kind: "pinned" };
    });
  }

  async unpinServers(groupUuid: string, serverUuids: readonly string[], cell: string): Promise<void> {
    await this.#write("unpin_group_cell", async (client) => {
      if (!(await lockGroup(client, groupUuid))) return;
      await queryRows(client, {
        name: "unpin_group_cell",
        text: "update server_group_members set cell = null where group_uuid = $1 and server_uuid = any ($2) and cell = $3",
        values: [groupUuid, onlyUuids(serverUuids), cell],
      });
    });
  }

  #write<Outcome>(operation: string, write: (client: PoolClient) => Promise<Outcome>): Promise<Outcome> {
    return runStored(operation, () => inTransaction(this.#pool, write));
  }
}

/** Returns false when there is no such group. */
async function lockGroup(client: PoolClient, groupUuid: string): Promise<boolean> {
  if (onlyUuids([groupUuid]).length === 0) return false;
  const rows = await queryRows(client, {
    name: "lock_server_group",
    text: "select from server_groups where uuid = $1 for no key update",
    values: [groupUuid],
  });
  return rows.length > 0;
}

function recordOf(row: GroupRow): ServerGroupRecord {
  return {
    uuid: row.uuid,
    name: row.name,
    projectId: row.project_id,
    userId: row.user_id,
    policy: row.policy,
    maxServerPerHost: row.max_server_per_host,
    members: row.members,
  };
}
