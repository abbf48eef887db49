import { afterAll, beforeAll } from "vitest";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { ledgerContract } from "../contract/ledger.contract.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { emptyLedgerTables } from "../rigs/empty-ledger.ts";

let database: TestDatabase;
let pool: ReturnType<typeof createPool>;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "ledger test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

ledgerContract("Postgres", async () => {
  await emptyLedgerTables(pool);
  return { ledger: new PostgresLedger(pool), dispose: async () => {} };
});
