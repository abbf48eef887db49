import type { Pool } from "pg";
import type { RequestRecord, RequestState } from "../../../core/stores/api/api-store.ts";
import { changedSpec, type UserChanges } from "../../../core/tasks/user-changes.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { arrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored, selectMs } from "../client/store-query.ts";
import { bytesOfText } from "../client/value-types.ts";

export interface RequestRow {
  readonly server_uuid: string;
  readonly state: RequestState;
  readonly cell: string | null;
  readonly assignment: number;
  /** Read as text. */
  readonly spec: string;
  /** The present name. The spec has the original one. */
  readonly name: string;
  readonly changes: UserChanges | null;
  readonly fault: string | null;
  readonly cancel_request_id: string | null;
  readonly cancelled_at_ms: number | null;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
  readonly gone: boolean;
}

/** The columns of a `RequestRow`, for statements with `isBytesAsText`. */
export const REQUEST_COLUMNS = `server_uuid, state, cell, assignment, spec, name, changes, fault, cancel_request_id, gone, ${[
  "cancelled_at",
  "created_at",
  "updated_at",
]
  .map((column) => selectMs(column))
  .join(", ")}`;

export function requestOf(row: RequestRow): RequestRecord {
  const { cancel_request_id: requestId, cancelled_at_ms: atMs } = row;
  let spec: ServerSpec | null = null;
  return {
    serverUuid: row.server_uuid,
    state: row.state,
    cell: row.cell,
    assignment: row.assignment,
    // Read from the text and decoded only when it is read, because many callers, such as deletes, never read it.
    get spec() {
      spec ??= changedSpec({ ...ServerSpec.decode(bytesOfText(row.spec)), name: row.name }, row.changes);
      return spec;
    },
    changes: row.changes,
    fault: row.fault,
    cancellation: requestId === null || atMs === null ? null : { requestId, atMs },
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    // `gone` is also set when a request is cancelled or deleted.
    softlyDeleted: row.gone && row.state === "dispatched",
  };
}

export async function readRequests(pool: Pool, serverUuids: readonly string[]): Promise<readonly RequestRecord[]> {
  if (serverUuids.length === 0) return [];
  const rows = await queryStored<RequestRow>(pool, {
    name: "requests",
    text: `select ${REQUEST_COLUMNS} from requests where server_uuid = any ($1)`,
    values: [arrayLiteral(onlyUuids(serverUuids))],
    isBytesAsText: true,
  });
  const byUuid = new Map(rows.map((row) => [row.server_uuid, row]));
  return serverUuids
    .map((uuid) => byUuid.get(uuid.toLowerCase()))
    .filter((row) => row !== undefined)
    .map(requestOf);
}

/** Cost: one round trip and, for each UUID, a descent into an index that has only the servers with changes. */
export async function readChanges(
  pool: Pool,
  serverUuids: readonly string[],
): Promise<ReadonlyMap<string, UserChanges>> {
  if (serverUuids.length === 0) return new Map();
  const rows = await queryStored<{ readonly server_uuid: string; readonly changes: UserChanges }>(pool, {
    name: "changes_of_servers",
    text: "select server_uuid, changes from requests where server_uuid = any ($1) and changes is not null",
    values: [arrayLiteral(onlyUuids(serverUuids))],
  });
  return new Map(rows.map(({ server_uuid, changes }) => [server_uuid, changes]));
}
