import type { Pool } from "pg";
import type { HostRecord, HostSighting } from "../../../core/stores/cell/cell-store.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { queryStored } from "../client/store-query.ts";
import { readResidents } from "./read-servers.ts";

interface RecordRow {
  readonly host: string;
  /** Null for a host that the cell does not know. */
  readonly agent_id: string | null;
  readonly up: boolean | null;
  readonly forced_down: boolean | null;
  readonly seen_ago_ms: number | null;
  readonly held: readonly string[];
  readonly quarantined: readonly string[];
  readonly incarnation: string;
}

/** Cost: a statement with a few look-ups in indexes for each host, and at the same time another one for the residents. */
export async function readHostRecords(
  pool: Pool,
  hosts: readonly string[],
  { withResidents = true }: { readonly withResidents?: boolean } = {},
): Promise<readonly HostRecord[]> {
  const [residents, rows] = await Promise.all([
    withResidents ? readResidents(pool, hosts) : [],
    queryStored<RecordRow>(pool, {
      name: "host_records",
      text: `select w.host, h.agent_id, h.up, h.forced_down,
          extract(epoch from clock_timestamp() - a.seen_at)::float8 * 1000 as seen_ago_ms,
          array(select m.uuid::text from migrations m where m.source_host = w.host and m.holds_source order by m.uuid) as held,
          array(select q.attempt_id from quarantined_guests q where q.host = w.host order by q.attempt_id collate "C") as quarantined,
          (select cell_incarnation()) as incarnation
        from unnest($1::text[]) as w (host)
        left join hosts h on h.name = w.host left join agents a on a.id = h.agent_id`,
      values: [textArrayLiteral([...new Set(hosts)])],
    }),
  ]);
  const byHost = new Map(rows.map((row) => [row.host, row]));
  return hosts.map((host, index) => {
    const row = byHost.get(host);
    return {
      sighting: row === undefined ? null : sightingOf(row),
      residents: residents[index] ?? [],
      held: row?.held ?? [],
      quarantined: row?.quarantined ?? [],
      incarnation: row?.incarnation ?? "",
    };
  });
}

function sightingOf(row: RecordRow): HostSighting | null {
  const { host, agent_id, up, forced_down, seen_ago_ms } = row;
  if (agent_id === null || up === null || forced_down === null || seen_ago_ms === null) return null;
  return { name: host, agentId: agent_id, up, forcedDown: forced_down, seenAgoMs: seen_ago_ms };
}
