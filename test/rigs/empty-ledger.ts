import type { Pool } from "pg";
import { emptyTables } from "./empty-tables.ts";

/** Empties the ledger of a test's own database. */
export async function emptyLedgerTables(pool: Pool): Promise<void> {
  await emptyTables(pool, [
    ...["allocations", "consumers", "provider_aggregates", "provider_traits", "inventories", "reported_trees"],
    "resource_providers",
  ]);
  await pool.query("select setval(pg_get_serial_sequence('resource_providers', 'id'), 1, false)");
}
