import type { Pool } from "pg";
import type { PlugEvent, PluggedPort } from "../../../core/stores/cell/plug-store.ts";
import { hearsNeighbours, OPERATION_KINDS } from "../../../core/tasks/operation-kinds.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";

/** Cost: one round trip. The rows of the server's earlier migrations are deleted, since nobody waits for them. */
export async function writePluggedPorts(pool: Pool, events: readonly PlugEvent[]): Promise<void> {
  const known = new Set(onlyUuids(events.map(({ serverUuid }) => serverUuid)));
  const noted = events.filter(({ serverUuid }) => known.has(serverUuid));
  if (noted.length === 0) return;
  const latest = new Map(noted.map((event) => [`${event.serverUuid} ${event.portId}`, event]));
  const sorted = [...latest].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, event]) => event);
  await queryStored(pool, {
    name: "note_plugged",
    text: `with events as materialized (
        select * from unnest($1::uuid[], $2::text[], $3::boolean[]) as e (server_uuid, port_id, failed)
      ), earlier as (
        delete from plugged_ports using migrations m
        where migration_uuid = m.uuid and m.ended and m.server_uuid in (select server_uuid from events)
      )
      insert into plugged_ports (attempt_id, port_id, migration_uuid, failed)
      select m.dest_attempt_id, e.port_id, m.uuid, e.failed
      from events e join migrations m on m.server_uuid = e.server_uuid and not m.ended
      where m.kind = any($4::text[])
      on conflict (attempt_id, port_id) do update set failed = excluded.failed`,
    values: [
      textArrayLiteral(sorted.map(({ serverUuid }) => serverUuid)),
      textArrayLiteral(sorted.map(({ portId }) => portId)),
      sorted.map(({ isFailed }) => isFailed),
      textArrayLiteral(OPERATION_KINDS.filter(hearsNeighbours)),
    ],
  });
}

/** Cost: one round trip. */
export async function readPluggedPorts(
  pool: Pool,
  attemptIds: readonly string[],
): Promise<readonly (readonly PluggedPort[])[]> {
  const rows = await queryStored<{ attempt_id: string; port_id: string; failed: boolean }>(pool, {
    name: "plugged_ports",
    text: `select attempt_id, port_id, failed from plugged_ports where attempt_id = any($1::text[])
      order by port_id collate "C"`,
    values: [textArrayLiteral(attemptIds)],
  });
  const byAttempt = Map.groupBy(rows, ({ attempt_id }) => attempt_id);
  return attemptIds.map((id) =>
    (byAttempt.get(id) ?? []).map(({ port_id, failed }) => ({ portId: port_id, isFailed: failed })),
  );
}
