import type { Pool } from "pg";
import type { RequestRecord } from "../../../core/stores/api/api-store.ts";
import type { UserChanges } from "../../../core/tasks/user-changes.ts";
import { runStored } from "../client/run-stored.ts";
import { onlyUuids, queryRows } from "../client/store-query.ts";
import { inTransaction } from "../client/transaction.ts";
import { REQUEST_COLUMNS, type RequestRow, requestOf } from "./read-requests.ts";

/** Cost: a transaction of two statements, under the lock of the request's row. */
export async function changeServer(
  pool: Pool,
  serverUuid: string,
  update: (current: RequestRecord) => UserChanges | null,
): Promise<RequestRecord | null> {
  if (onlyUuids([serverUuid]).length === 0) return null;
  return runStored("change_server", () =>
    inTransaction(pool, async (client) => {
      const [row] = await queryRows<RequestRow>(client, {
        name: "lock_request",
        text: `select ${REQUEST_COLUMNS} from requests where server_uuid = $1 for no key update`,
        values: [serverUuid],
        isBytesAsText: true,
      });
      if (row === undefined) return null;
      const changes = update(requestOf(row));
      if (changes === null) return requestOf(row);
      await queryRows(client, {
        name: "write_changes",
        text: "update requests set changes = $2, name = $3 where server_uuid = $1",
        values: [serverUuid, JSON.stringify(changes, wellFormed), changes.name ?? row.name],
      });
      return requestOf({ ...row, changes });
    }),
  );
}

/** Postgres refuses halves of surrogate pairs, so they become replacement characters, as they do in an encoded spec. */
const wellFormed = (_key: string, value: unknown): unknown =>
  typeof value === "string" ? value.toWellFormed() : value;
