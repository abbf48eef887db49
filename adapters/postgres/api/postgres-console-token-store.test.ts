import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { consoleTokenStoreContract } from "../../../test/contract/console-token-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresConsoleTokenStore } from "./postgres-console-token-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "console token store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

consoleTokenStoreContract("Postgres", async () => {
  await emptyTables(pool, ["console_tokens"]);
  return new PostgresConsoleTokenStore(pool);
});
