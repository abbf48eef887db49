import type { Pool, PoolClient } from "pg";
import type { ServerAttempt } from "../../../core/stores/cell/quarantine.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryRows, queryStored, type StoreQuery } from "../client/store-query.ts";

interface FoundRow {
  readonly at: number;
}

/** Whether another guest of the server than that of this attempt is in quarantine, and may run. Cost: one round trip. */
export async function readOthersInQuarantine(
  pool: Pool,
  attempts: readonly ServerAttempt[],
): Promise<readonly boolean[]> {
  return found(attempts, await queryStored<FoundRow>(pool, queryOf(attempts)));
}

/** The same, in a transaction. */
export async function lookForOthersInQuarantine(
  client: PoolClient,
  attempts: readonly ServerAttempt[],
): Promise<readonly boolean[]> {
  return found(attempts, await queryRows<FoundRow>(client, queryOf(attempts)));
}

function queryOf(attempts: readonly ServerAttempt[]): StoreQuery {
  return {
    name: "others_in_quarantine",
    text: `select w.at::int from unnest($1::text[], $2::text[]) with ordinality as w (server_uuid, attempt_id, at)
      where exists (
        select from quarantined_guests q
        where q.server_uuid = w.server_uuid and q.attempt_id <> w.attempt_id and q.holds and not q.condemned
      )`,
    values: [
      textArrayLiteral(attempts.map(({ serverUuid }) => serverUuid)),
      textArrayLiteral(attempts.map(({ attemptId }) => attemptId)),
    ],
  };
}

function found(attempts: readonly ServerAttempt[], rows: readonly FoundRow[]): readonly boolean[] {
  const positions = new Set(rows.map(({ at }) => at));
  return attempts.map((_, index) => positions.has(index + 1));
}
