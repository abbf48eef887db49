import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { cellStoreContract } from "../../test/contract/cell-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../test/databases.ts";
import { emptyCellTables } from "../../test/empty-cell.ts";
import { createPool } from "./pool.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";
import { PostgresLedger } from "./postgres-ledger.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "cell store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

cellStoreContract("Postgres", async () => {
  await emptyCellTables(pool);
  return { store: new PostgresCellStore(pool), ledger: new PostgresLedger(pool), close: async () => undefined };
});
