import type { Pool } from "pg";
import type { RequestScan, RequestStretch } from "../../../core/stores/api/api-store.ts";
import { queryStored } from "../client/store-query.ts";
import { REQUEST_COLUMNS, type RequestRow, requestOf } from "./read-requests.ts";
import { afterPlace, placeOfMarker, REQUEST_ORDERS_SQL } from "./request-order.ts";

/**
 * A stretch of the list by keyset, like `listRequests`. It reads a fixed number of rows, of which fewer may be listed. Cost: one round trip, two with a marker.
 */
export async function scanRequests(pool: Pool, scan: RequestScan): Promise<RequestStretch> {
  const { projectId, marker, rows, created, named, order = "newest-first" } = scan;
  const { forwards, backwards } = REQUEST_ORDERS_SQL[order];
  const after = marker === null ? (scan.after ?? null) : await placeOfMarker(pool, marker);
  if (after === undefined) return { records: [], resumeAt: null };
  const values: unknown[] = [rows];
  const conditions = ["not gone"];
  if (projectId !== null) conditions.push(`project_id = $${values.push(projectId)}`);
  for (const [is, atMs] of [[">=", created?.fromMs] as const, ["<", created?.beforeMs] as const])
    if (atMs !== undefined) conditions.push(`created_at ${is} to_timestamp($${values.push(atMs)}::float8 / 1000)`);
  if (after !== null) conditions.push(...afterPlace(order, after, (value) => `$${values.push(value)}`));
  const listed = "state not in ('deleted', 'cancelled')";
  const found = await queryStored<RequestRow & { readonly last_uuid: string | null }>(pool, {
    name: `scan_requests${projectId === null ? "" : "_project"}${created === undefined ? "" : "_created"}${named === undefined ? "" : "_named"}${after === null ? "" : "_marker"}_${order}`,
    text: `with scanned as materialized (
        select * from (
          select l.*, ${named === undefined ? "true" : `position($${values.push(named.contains)} in name) > 0`} and ${listed} as passes, row_number() over () as n from (
            select server_uuid, created_at, name, state from requests where ${conditions.join(" and ")}
            order by ${forwards} limit $1
          ) l
        ) p where passes or n = $1 ${named === undefined ? "" : `limit $${values.push(named.limit)}`}
      )
      select s.last_uuid, r.*
      from (
        select (
          select server_uuid from scanned
          where n = $1 ${named === undefined ? "" : `or (select count(*) from scanned) = $${values.length}`}
          order by ${backwards} limit 1
        ) as last_uuid
      ) s
      left join (
        select ${REQUEST_COLUMNS}, created_at from requests where server_uuid in (select server_uuid from scanned where passes)
      ) r on true
      order by ${forwards}`,
    values,
    isBytesAsText: true,
  });
  const records = found.filter((row) => row.server_uuid !== null).map(requestOf);
  return { records, resumeAt: found[0]?.last_uuid ?? null };
}
