import type { Pool } from "pg";
import { CONSUMER_TYPE_INSTANCE, CONSUMER_TYPE_MIGRATION } from "../../../core/ledger/model.ts";
import { queryStored } from "../store-query.ts";

/** Cost: one round trip; looks at the evacuations that hold something. */
export async function readFencedSources(pool: Pool): Promise<readonly string[]> {
  const rows = await queryStored<{ name: string }>(pool, {
    name: "fenced_sources",
    text: `select distinct h.name collate "C" as name from migrations m join hosts h on h.name = m.source_host
      where m.holds_source and h.forced_down order by 1`,
    values: [],
  });
  return rows.map((row) => row.name);
}

/** One snapshot: what claims for a server writes the server, too. */
export async function readStrays(pool: Pool, limit: number): Promise<readonly string[]> {
  const rows = await queryStored<{ uuid: string }>(pool, {
    name: "strays",
    text: `select c.uuid from consumers c
      where (c.type = $1 and not exists (
          select from servers s where s.uuid = c.uuid and s.host is not null and s.status <> 'DELETED'
        )) or (c.type = $2 and not exists (
          select from migrations m where m.uuid = c.uuid and (not m.ended or m.holds_source)
        ))
      order by c.uuid limit $3`,
    values: [CONSUMER_TYPE_INSTANCE, CONSUMER_TYPE_MIGRATION, limit],
  });
  return rows.map((row) => row.uuid);
}
