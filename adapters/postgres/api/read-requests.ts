import type { Pool } from "pg";
import type {
  RequestQuery,
  RequestRecord,
  RequestScan,
  RequestState,
  RequestStretch,
} from "../../../core/stores/api/api-store.ts";
import { changedSpec, type UserChanges } from "../../../core/tasks/user-changes.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored, selectMs } from "../client/store-query.ts";

export interface RequestRow {
  readonly server_uuid: string;
  readonly state: RequestState;
  readonly cell: string | null;
  readonly assignment: number;
  readonly spec: Buffer;
  /** The present name. The spec has the original one. */
  readonly name: string;
  readonly changes: UserChanges | null;
  readonly fault: string | null;
  readonly cancel_request_id: string | null;
  readonly cancelled_at_ms: number | null;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
}

export const REQUEST_COLUMNS = `server_uuid, state, cell, assignment, spec, name, changes, fault, cancel_request_id, ${[
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
    // Decoded only when it is read, because many callers, such as deletes, never read it.
    get spec() {
      spec ??= changedSpec({ ...ServerSpec.decode(row.spec), name: row.name }, row.changes);
      return spec;
    },
    changes: row.changes,
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

/** The words of SQL for the two directions of the list, in both of which its index is read. */
const NEWEST_FIRST = { created: "desc", uuid: "asc", next: "<", after: ">" };
const OLDEST_FIRST = { created: "asc", uuid: "desc", next: ">", after: "<" };

/**
 * A stretch of the list by keyset, like `listRequests`. It reads a fixed number of rows and may return fewer. Cost: one round trip, two with a marker.
 */
export async function scanRequests(pool: Pool, scan: RequestScan): Promise<RequestStretch> {
  const { projectId, marker: after, rows, oldestFirst = false } = scan;
  const order = oldestFirst ? OLDEST_FIRST : NEWEST_FIRST;
  const [marker] = after === null ? [] : await readRequests(pool, [after]);
  if (after !== null && marker === undefined) return { records: [], resumeAt: null };
  const values: unknown[] = [rows];
  const conditions = ["not gone"];
  if (projectId !== null) conditions.push(`project_id = $${values.push(projectId)}`);
  if (marker !== undefined) {
    const at = values.push(marker.createdAtMs);
    // Only this first condition bounds the index scan.
    conditions.push(`created_at ${order.next}= to_timestamp($${at}::float8 / 1000)`);
    const isAfter = `server_uuid ${order.after} $${values.push(marker.serverUuid)}`;
    conditions.push(`(created_at ${order.next} to_timestamp($${at}::float8 / 1000) or ${isAfter})`);
  }
  const found = await queryStored<RequestRow & { readonly scanned: number; readonly last_uuid: string | null }>(pool, {
    name: `scan_requests${projectId === null ? "" : "_project"}${marker === undefined ? "" : "_marker"}${oldestFirst ? "_oldest" : ""}`,
    text: `with scanned as materialized (
        select server_uuid, created_at, state from requests where ${conditions.join(" and ")}
        order by created_at ${order.created}, server_uuid ${order.uuid} limit $1
      )
      select s.scanned, s.last_uuid, r.*
      from (
        select count(*)::int as scanned,
          -- The last one of the stretch is the first one of the opposite direction.
          (select server_uuid from scanned order by created_at ${order.uuid}, server_uuid ${order.created} limit 1) as last_uuid
        from scanned
      ) s
      left join (
        select ${REQUEST_COLUMNS} from requests where server_uuid in (
          select server_uuid from scanned where state not in ('deleted', 'cancelled')
        )
      ) r on true
      order by r.created_at_ms ${order.created}, r.server_uuid ${order.uuid}`,
    values,
  });
  const [first] = found;
  const isLast = first === undefined || first.scanned < rows;
  const records = found.filter((row) => row.server_uuid !== null).map(requestOf);
  return { records, resumeAt: isLast ? null : first.last_uuid };
}

/**
 * One page by keyset. The index returns it in order, however far down the list it is and however many requests before it were deleted. The
 * statement contains only the conditions of this query, since a prepared `$1 is null or …` would use no index. Cost: one round trip, two
 * with a marker.
 */
export async function listRequests(pool: Pool, query: RequestQuery): Promise<readonly RequestRecord[]> {
  const conditions = ["not gone", "state not in ('deleted', 'cancelled')"];
  const values: unknown[] = [];
  const where = (asked: string, condition: (parameter: string) => string, value: unknown): void => {
    values.push(value);
    conditions.push(condition(`$${values.length}`));
    shape += `_${asked}`;
  };
  const order = query.oldestFirst === true ? OLDEST_FIRST : NEWEST_FIRST;
  let shape = query.oldestFirst === true ? "list_requests_oldest" : "list_requests";
  if (query.projectId !== null) where("project", (p) => `project_id = ${p}`, query.projectId);
  // The index of names serves `like`, and no other way to search a text.
  if (query.nameContains) where("name", (p) => `name like ${p}`, `%${query.nameContains.replace(/[\\%_]/g, "\\$&")}%`);
  // Each condition equals the condition of an index, or can be answered by that index.
  if (query.tags !== undefined) conditions.push("changes ? 'tags'");
  if (query.tags && query.tags.all.length > 0)
    where("tags", (p) => `changes -> 'tags' ?& ${p}::text[]`, textArrayLiteral(query.tags.all));
  if (query.tags && query.tags.any.length > 0)
    where("any_tags", (p) => `changes -> 'tags' ?| ${p}::text[]`, textArrayLiteral(query.tags.any));
  if (query.locked === true) {
    conditions.push("changes ->> 'lock' is not null");
    shape += "_locked";
  }
  if (query.failed === true) {
    conditions.push("fault is not null");
    shape += "_failed";
  }
  if (query.open === true) {
    conditions.push("server_uuid in (select o.server_uuid from open_requests o)");
    shape += "_open";
  }
  if (query.changedSinceMs !== undefined) {
    where("changed", (p) => `updated_at >= to_timestamp(${p}::float8 / 1000)`, query.changedSinceMs);
  }
  if (query.marker !== null) {
    const [marker] = await readRequests(pool, [query.marker]);
    if (marker === undefined) return [];
    // Only this first condition bounds the index scan.
    where("marker", (p) => `created_at ${order.next}= to_timestamp(${p}::float8 / 1000)`, marker.createdAtMs);
    const isNext = `created_at ${order.next} to_timestamp($${values.length}::float8 / 1000)`;
    where("", (p) => `(${isNext} or server_uuid ${order.after} ${p})`, marker.serverUuid);
  }
  const rows = await queryStored<RequestRow>(pool, {
    name: shape,
    text: `select ${REQUEST_COLUMNS} from requests where ${conditions.join(" and ")}
      order by created_at ${order.created}, server_uuid ${order.uuid} limit $${values.length + 1}`,
    values: [...values, query.limit],
  });
  return rows.map(requestOf);
}
