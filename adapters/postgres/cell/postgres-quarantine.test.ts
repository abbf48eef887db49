import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { quarantineContract } from "../../../test/contract/quarantine.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyCellTables } from "../../../test/rigs/empty-cell.ts";
import { createPool } from "../client/pool.ts";
import { PostgresLedger } from "../ledger/postgres-ledger.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";
import { PostgresHostAdminStore } from "./postgres-host-admin-store.ts";
import { PostgresQuarantine } from "./postgres-quarantine.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "quarantine test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

quarantineContract("Postgres", async () => {
  await emptyCellTables(pool);
  await pool.query("truncate quarantined_guests");
  return {
    admin: new PostgresHostAdminStore(pool),
    cell: new PostgresCellStore(pool),
    ledger: new PostgresLedger(pool),
    quarantine: new PostgresQuarantine(pool),
    close: async () => undefined,
  };
});
