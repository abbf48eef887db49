import type { Pool } from "pg";
import { CONSUMER_TYPE_INSTANCE, CONSUMER_TYPE_MIGRATION } from "../../../core/ledger/model.ts";
import { queryStored } from "../store-query.ts";

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
