import type { Pool } from "pg";
import type { ChangedServers, ChangesQuery } from "../../../core/stores/cell/cell-store.ts";
import { runStored } from "../client/run-stored.ts";
import { inTransaction } from "../client/transaction.ts";
import { SERVER_COLUMNS, type StoredServer, storedServerOf } from "./read-servers.ts";

/** SQLSTATE of a statement that took longer than `statement_timeout`. */
const CANCELED = "57014";

/**
 * Cost: four round trips on one connection, and a look at the pages whose servers may have been changed in the time, until `looksMax` of them were and
 * one more. The index of changes names ranges of pages, so that many scattered changes make the database look at very many servers: it stops after `msMax`.
 */
export function readServersChanged(pool: Pool, query: ChangesQuery): Promise<ChangedServers> {
  const { text, values } = changesStatement(query);
  return runStored("servers_changed", async (): Promise<ChangedServers> => {
    try {
      const rows = await inTransaction(pool, async (client) => {
        await client.query(`set local statement_timeout = ${Math.max(1, Math.ceil(query.msMax))}`);
        // Without a name it is planned with its values each time. A kept plan cannot know whether a time is that of few changes or of all.
        return (await client.query<ChangedRow>({ text, values: [...values] })).rows;
      });
      if (rows.some(({ looked }) => looked > query.looksMax)) return { kind: "too-many" };
      const servers = rows.filter((row): row is ChangedRow & StoredServer => row.uuid !== null).map(storedServerOf);
      return { kind: "found", servers };
    } catch (error) {
      if ((error as { readonly code?: string }).code === CANCELED) return { kind: "too-slow" };
      throw error;
    }
  });
}

interface ChangedRow extends Omit<StoredServer, "uuid"> {
  readonly looked: number;
  readonly uuid: string | null;
}

/** The statement of `readServersChanged`. */
export function changesStatement({ sinceMs, beforeMs, deleted, projectId, looksMax }: ChangesQuery): {
  readonly text: string;
  readonly values: readonly unknown[];
} {
  const values: unknown[] = [looksMax + 1, projectId];
  const conditions: string[] = [];
  // Without a condition for a time that is not asked for, no index of times is considered.
  if (sinceMs > 0) conditions.push(`updated_at >= to_timestamp($${values.push(sinceMs)}::float8 / 1000)`);
  if (beforeMs !== null) conditions.push(`updated_at < to_timestamp($${values.push(beforeMs + 1)}::float8 / 1000)`);
  const where = (...others: readonly string[]) => [...conditions, ...others].join(" and ");
  // No order, so that the search ends with the last row that it may look at.
  const found = deleted
    ? `(select uuid, project_id from servers where ${where("deleted_at is not null", "status <> 'CLOSED'")} limit $1)
        union
        (select s.uuid, s.project_id from unusual_servers u cross join lateral (
          select uuid, project_id from servers where uuid = u.server_uuid and ${where("status = 'SOFT_DELETED'")} offset 0
        ) s where u.status = 'SOFT_DELETED' limit $1)`
    : `select uuid, project_id from servers where ${where("status <> 'CLOSED'")} limit $1`;
  return {
    // With "offset 0", the servers are read by their keys, and none is read when there are too many.
    text: `with found as materialized (
        ${found}
      )
      select l.looked, s.*
      from (select count(*)::int as looked from found) l
      left join (
        select r.* from found f cross join lateral (select ${SERVER_COLUMNS}, updated_at from servers where uuid = f.uuid offset 0) r
        where (select count(*) from found) < $1 and ($2::text is null or f.project_id = $2) offset 0
      ) s on true
      order by s.updated_at, s.uuid`,
    values,
  };
}
