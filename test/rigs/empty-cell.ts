import type { Pool } from "pg";
import { emptyLedgerTables } from "./empty-ledger.ts";
import { emptyTables } from "./empty-tables.ts";

/** Empties all tables of a test's own cell database, its ledger included. */
export async function emptyCellTables(pool: Pool): Promise<void> {
  await emptyTables(pool, [
    ...["agents", "hosts", "conductors", "servers", "tasks", "attempts", "migrations", "transfer_progress"],
    ...["plugged_ports", "group_members", "compared_hosts", "quarantined_guests", "closed_tasks", "unusual_servers"],
  ]);
  await emptyLedgerTables(pool);
}
