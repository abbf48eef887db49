import type { Pool } from "pg";
import type { PlaceableRequest, RequestState, SpecLimits } from "../../../core/stores/api/api-store.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { decodeKept } from "../../../runtime/encode-once.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";

interface PlaceableRow {
  readonly server_uuid: string;
  readonly state: RequestState;
  readonly cell: string | null;
  readonly assignment: number;
  readonly spec: Buffer | null;
  readonly spec_bytes: number;
  readonly put_offs: number;
  readonly age_ms: number;
}

/**
 * The specs that fit into one page, in the order of the UUIDs. Postgres tells the sizes of the other specs without reading them. Cost: one
 * round trip, with a look-up by key in two tables for each request.
 */
export async function readPlaceable(
  pool: Pool,
  serverUuids: readonly string[],
  { specBytesMax, pageBytesMax }: SpecLimits,
): Promise<{ readonly found: readonly PlaceableRequest[]; readonly left: readonly string[] }> {
  const uuids = onlyUuids([...new Set(serverUuids.map((uuid) => uuid.toLowerCase()))]);
  if (uuids.length === 0) return { found: [], left: [] };
  const rows = await queryStored<PlaceableRow>(pool, {
    name: "placeable_requests",
    text: `with sized as (
        select r.server_uuid, r.state, r.cell, r.assignment, r.spec, octet_length(r.spec) as spec_bytes, coalesce(o.put_offs, 0) as put_offs,
          extract(epoch from now() - coalesce(o.accepted_at, r.updated_at))::float8 * 1000 as age_ms,
          sum(case when octet_length(r.spec) <= $2::int then octet_length(r.spec) else 0 end) over (order by a.at) as page_bytes
        from unnest($1::uuid[]) with ordinality as a (uuid, at)
        join requests r on r.server_uuid = a.uuid
        left join open_requests o on o.server_uuid = a.uuid
      )
      select server_uuid, state, cell, assignment, spec_bytes, put_offs, age_ms,
        case when spec_bytes <= $2::int and page_bytes <= $3::bigint then spec end as spec
      from sized`,
    values: [textArrayLiteral(uuids), specBytesMax, pageBytesMax],
  });
  const isLeft = (row: PlaceableRow): boolean => row.spec === null && row.spec_bytes <= specBytesMax;
  return {
    found: rows.filter((row) => !isLeft(row)).map(placeableOf),
    left: rows.filter(isLeft).map((row) => row.server_uuid),
  };
}

function placeableOf(row: PlaceableRow): PlaceableRequest {
  return {
    serverUuid: row.server_uuid,
    state: row.state,
    cell: row.cell,
    assignment: row.assignment,
    spec: row.spec === null ? null : decodeKept(ServerSpec, row.spec),
    specBytes: row.spec_bytes,
    putOffs: row.put_offs,
    ageMs: Math.max(0, row.age_ms),
  };
}
