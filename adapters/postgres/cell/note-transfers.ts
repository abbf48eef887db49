import type { Pool } from "pg";
import type { TransferNote } from "../../../core/stores/cell/operation-store.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { onlyUuids, queryStored } from "../client/store-query.ts";

/** Cost: one round trip. Migrations that have ended, or that do not exist, are left out. */
export async function noteTransfers(pool: Pool, notes: readonly TransferNote[]): Promise<void> {
  const known = new Set(onlyUuids(notes.map(({ migrationUuid }) => migrationUuid)));
  const latest = [...new Map(notes.map((note) => [note.migrationUuid, note])).values()].filter((note) =>
    known.has(note.migrationUuid),
  );
  if (latest.length === 0) return;
  const sorted = latest.toSorted((a, b) => (a.migrationUuid < b.migrationUuid ? -1 : 1));
  const amounts = (of: "memory" | "disks", what: "total" | "processed" | "remaining") =>
    arrayLiteral(sorted.map(({ progress }) => progress[of][what]));
  await queryStored(pool, {
    name: "note_transfers",
    text: `insert into transfer_progress
      select n.* from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
          as n (uuid, memory_total, memory_processed, memory_remaining, disk_total, disk_processed, disk_remaining)
        join migrations m on m.uuid = n.uuid and not m.ended
      on conflict (migration_uuid) do update set memory_total = excluded.memory_total,
        memory_processed = excluded.memory_processed, memory_remaining = excluded.memory_remaining,
        disk_total = excluded.disk_total, disk_processed = excluded.disk_processed,
        disk_remaining = excluded.disk_remaining`,
    values: [
      textArrayLiteral(sorted.map(({ migrationUuid }) => migrationUuid)),
      amounts("memory", "total"),
      amounts("memory", "processed"),
      amounts("memory", "remaining"),
      amounts("disks", "total"),
      amounts("disks", "processed"),
      amounts("disks", "remaining"),
    ],
  });
}
