import type { Pool } from "pg";
import type { OpenRequest, PutOff, RequestState, SweepQuery } from "../../../core/stores/api/api-store.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";

// The schedulers' sweeps take requests that no process is working on. The time when a request is due is in `open_requests`, whose rows are
// only written under the lock of the row in `requests`.

/** This many concurrent sweeps each find some requests. Further ones find theirs later. */
const SWEEPS_AT_ONCE = 8;

interface SweptRow {
  readonly server_uuid: string;
  readonly state: RequestState;
  readonly cell: string | null;
  readonly touched_at: number;
}

/**
 * Skips requests that another sweep has locked at this moment, and those that another sweep took after this statement began: taking a
 * request changes its `updated_at` in both tables. Cost: one round trip, which examines each open request and writes two rows for each
 * taken one.
 */
export async function takeStale(
  pool: Pool,
  untouchedMs: number,
  limit: number,
  { placing = "all", exceptCells = [] }: SweepQuery = {},
): Promise<readonly OpenRequest[]> {
  const rows = await queryStored<SweptRow>(pool, {
    name: "sweep_requests",
    text: `with waiting as materialized (
        select server_uuid, updated_at, state from open_requests
        where case state when 'dispatched' then retry_at
            when 'accepted' then coalesce(retry_at, updated_at + $1::float8 * interval '1 ms')
            else updated_at + $1::float8 * interval '1 ms' end <= now()
          and (state = 'cancelled' or $3::text = 'all' or $3 = 'put-off' and put_offs > 0) and (cell is null or cell <> all ($4::text[]))
        order by updated_at, server_uuid limit ${SWEEPS_AT_ONCE} * $2::bigint
      ), found as (
        select r.server_uuid as uuid, r.updated_at as touched_at
        from waiting w join requests r on r.server_uuid = w.server_uuid
        where r.updated_at = w.updated_at and r.state = w.state
        order by w.updated_at, w.server_uuid limit $2 for no key update of r skip locked
      ), put_off as (
        update open_requests o set retry_at = now() + $1::float8 * interval '1 ms' from found where o.server_uuid = found.uuid
      )
      update requests set updated_at = now() from found where server_uuid = found.uuid
      returning server_uuid, state, cell, extract(epoch from found.touched_at)::float8 as touched_at`,
    values: [untouchedMs, limit, placing, textArrayLiteral(exceptCells)],
  });
  return [...rows]
    .sort((a, b) => a.touched_at - b.touched_at || (a.server_uuid < b.server_uuid ? -1 : 1))
    .map(({ server_uuid: serverUuid, state, cell }) => ({ serverUuid, state, cell }));
}

/** Cost: one round trip, which writes one small row for each request. */
export async function putOff(pool: Pool, putOffs: readonly PutOff[]): Promise<void> {
  const delays = new Map(putOffs.map(({ serverUuid, delayMs }) => [serverUuid.toLowerCase(), delayMs]));
  const uuids = onlyUuids([...delays.keys()]);
  if (uuids.length === 0) return;
  await queryStored(pool, {
    name: "put_off_requests",
    text: `with locked as (
        select server_uuid from requests where server_uuid = any ($1) and state in ('accepted', 'dispatched')
        order by server_uuid for no key update
      )
      update open_requests o set retry_at = now() + w.delay_ms * interval '1 ms', put_offs = o.put_offs + 1
      from unnest($1::uuid[], $2::float8[]) as w (uuid, delay_ms) join locked l on l.server_uuid = w.uuid
      where o.server_uuid = w.uuid`,
    values: [textArrayLiteral(uuids), arrayLiteral(uuids.map((uuid) => delays.get(uuid) ?? 0))],
  });
}
