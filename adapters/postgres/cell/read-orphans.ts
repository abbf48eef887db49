import type { Pool } from "pg";
import { CONSUMER_TYPE_INSTANCE, CONSUMER_TYPE_MIGRATION } from "../../../core/ledger/model.ts";
import type { OrphanLook, OrphanPage } from "../../../core/stores/cell/operation-store.ts";
import { textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";

/** Cost: one round trip; reads the evacuations that hold something. */
export async function readFencedSources(pool: Pool): Promise<readonly string[]> {
  const rows = await queryStored<{ name: string }>(pool, {
    name: "fenced_sources",
    text: `select distinct h.name collate "C" as name from migrations m join hosts h on h.name = m.source_host
      where m.holds_source and h.forced_down order by 1`,
    values: [],
  });
  return rows.map((row) => row.name);
}

const BEFORE_ALL = "00000000-0000-0000-0000-000000000000";

/**
 * Reads one snapshot, because a transaction that claims for a server writes the server, too. Cost: reads `lookAt` rows by the primary key,
 * with a look-up for each.
 */
export async function readOrphans(pool: Pool, look: OrphanLook): Promise<OrphanPage> {
  const [row] = await queryStored<{ orphans: string[]; next: string | null }>(pool, {
    name: "orphans",
    text: `with page as materialized (
        select c.uuid, c.type from consumers c where c.uuid > $3 order by c.uuid limit $4
      ), looked_at as (
        select p.uuid, p.type from page p
        union select c.uuid, c.type from consumers c where c.uuid = any ($5)
      )
      select array(
          select c.uuid::text from looked_at c
          where (c.type = $1 and not exists (
              select from servers s where s.uuid = c.uuid and s.host is not null and s.status <> 'DELETED'
            )) or (c.type = $2 and not exists (
              select from migrations m where m.uuid = c.uuid and (not m.ended or m.holds_source)
            ))
          order by c.uuid limit $6
        ) as orphans,
        (select case when count(*) = $4 then (select p.uuid::text from page p order by p.uuid desc limit 1) end from page) as next`,
    values: [
      CONSUMER_TYPE_INSTANCE,
      CONSUMER_TYPE_MIGRATION,
      look.after ?? BEFORE_ALL,
      look.lookAt,
      textArrayLiteral(onlyUuids(look.again)),
      look.limit,
    ],
  });
  return row as OrphanPage;
}
