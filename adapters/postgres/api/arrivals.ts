import type { Pool } from "pg";
import type { OpenRequest } from "../../../core/stores/api/api-store.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";

// Requests on their way into a cell. They stay `dispatched` as long as their server lives, so the sweep that looks for lost requests marks
// the ones whose servers it has found in the cell, and `open_requests` holds only the others.

/** Cost: one round trip, which examines each open request. */
export async function readUnarrived(
  pool: Pool,
  cell: string,
  untouchedMs: number,
  limit: number,
): Promise<readonly OpenRequest[]> {
  const rows = await queryStored<{ readonly server_uuid: string }>(pool, {
    name: "unarrived_requests",
    text: `select server_uuid from open_requests
      where updated_at <= (select now() - $2::float8 * interval '1 ms') and state = 'dispatched' and cell = $1
      order by updated_at, server_uuid limit $3`,
    values: [cell, untouchedMs, limit],
  });
  return rows.map((row) => ({ serverUuid: row.server_uuid, state: "dispatched", cell }));
}

/** `updated_at` stays, because nothing has changed for clients that list changed servers. */
export async function markArrived(pool: Pool, cell: string, serverUuids: readonly string[]): Promise<void> {
  if (serverUuids.length === 0) return;
  await queryStored(pool, {
    name: "mark_arrived",
    text: `with locked as (
        select server_uuid from requests
        where server_uuid = any ($1) and state = 'dispatched' and cell = $2 and not arrived
        order by server_uuid for no key update
      )
      update requests r set arrived = true from locked where r.server_uuid = locked.server_uuid`,
    values: [textArrayLiteral(onlyUuids(serverUuids)), cell],
  });
}

/** Skips requests that another process has locked at this moment, because that process is working on them. */
export async function takeLost(
  pool: Pool,
  cell: string,
  serverUuids: readonly string[],
  untouchedMs: number,
): Promise<readonly string[]> {
  if (serverUuids.length === 0) return [];
  const rows = await queryStored<{ readonly server_uuid: string }>(pool, {
    name: "take_lost",
    text: `with locked as (
        select server_uuid from requests
        where server_uuid = any ($1) and state = 'dispatched' and cell = $2 and not arrived
          and updated_at <= now() - $3::float8 * interval '1 ms'
        order by server_uuid for no key update skip locked
      ), due as (
        update open_requests o set retry_at = now() from locked where o.server_uuid = locked.server_uuid
      )
      update requests r set updated_at = now() from locked where r.server_uuid = locked.server_uuid
      returning r.server_uuid`,
    values: [textArrayLiteral(onlyUuids(serverUuids)), cell, untouchedMs],
  });
  return rows.map((row) => row.server_uuid);
}
