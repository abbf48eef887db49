import type { Pool } from "pg";
import type { RequestQuery, RequestRecord, RequestState } from "../../../core/cell/api-store.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { textArrayLiteral } from "../literals.ts";
import { onlyUuids, queryStored, selectMs } from "../store-query.ts";

export interface RequestRow {
  readonly server_uuid: string;
  readonly state: RequestState;
  readonly cell: string | null;
  readonly spec: Buffer;
  readonly fault: string | null;
  readonly cancel_request_id: string | null;
  readonly cancelled_at_ms: number | null;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
}

export const REQUEST_COLUMNS = `server_uuid, state, cell, spec, fault, cancel_request_id, ${[
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
    // Whoever deletes a server never looks at it.
    get spec() {
      spec ??= ServerSpec.decode(row.spec);
      return spec;
    },
    fault: row.fault,
    cancellation: requestId === null || atMs === null ? null : { requestId, atMs },
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
  };
}

export async function readRequests(pool: Pool, serverUuids: readonly string[]): Promise<readonly RequestRecord[]> {
  const rows = await queryStored<RequestRow>(pool, {
    name: "requests",
    text: `select ${REQUEST_COLUMNS} from requests where server_uuid = any ($1)`,
    values: [textArrayLiteral(onlyUuids(serverUuids))],
  });
  const byUuid = new Map(rows.map((row) => [row.server_uuid, row]));
  return serverUuids
    .map((uuid) => byUuid.get(uuid.toLowerCase()))
    .filter((row) => row !== undefined)
    .map(requestOf);
}

/**
 * One page by keyset: the index gives it in order, however deep. Only the conditions that are asked for are in the
 * statement, since a prepared `$1 is null or …` would use no index. Cost: one round trip, two with a marker.
 */
export async function listRequests(pool: Pool, query: RequestQuery): Promise<readonly RequestRecord[]> {
  const conditions = ["state not in ('deleted', 'cancelled')"];
  const values: unknown[] = [];
  const where = (asked: string, condition: (parameter: string) => string, value: unknown): void => {
    values.push(value);
    conditions.push(condition(`$${values.length}`));
    shape += `_${asked}`;
  };
  let shape = "list_requests";
  if (query.projectId !== null) where("project", (p) => `project_id = ${p}`, query.projectId);
  if (query.nameContains) where("name", (p) => `position(${p} in name) > 0`, query.nameContains);
  if (query.changedSinceMs !== undefined) {
    where("changed", (p) => `updated_at >= to_timestamp(${p}::float8 / 1000)`, query.changedSinceMs);
  }
  if (query.marker !== null) {
    const [marker] = await readRequests(pool, [query.marker]);
    if (marker === undefined) return [];
    // The first alone bounds the index scan.
    where("marker", (p) => `created_at <= to_timestamp(${p}::float8 / 1000)`, marker.createdAtMs);
    const at = values.length;
    where("", (p) => `(created_at < to_timestamp($${at}::float8 / 1000) or server_uuid > ${p})`, marker.serverUuid);
  }
  const rows = await queryStored<RequestRow>(pool, {
    name: shape,
    text: `select ${REQUEST_COLUMNS} from requests where ${conditions.join(" and ")}
      order by created_at desc, server_uuid limit $${values.length + 1}`,
    values: [...values, query.limit],
  });
  return rows.map(requestOf);
}
