import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { hostAdminContract } from "../../test/contract/host-admin.contract.ts";
import { freshDatabase, type TestDatabase } from "../../test/databases.ts";
import { emptyCellTables } from "../../test/empty-cell.ts";
import { createPool } from "./pool.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";
import { PostgresHostAdminStore } from "./postgres-host-admin-store.ts";
import { PostgresLedger } from "./postgres-ledger.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "host admin test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

hostAdminContract("Postgres", async () => {
  await emptyCellTables(pool);
  await pool.query("truncate ratio_overrides, reported_ratios");
  const admin = new PostgresHostAdminStore(pool);
  return { admin, ledger: new PostgresLedger(pool), cell: new PostgresCellStore(pool), close: async () => undefined };
});
