import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { portStoreContract } from "../../../test/contract/port-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresPortStore } from "./postgres-port-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "port store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

portStoreContract("Postgres", async () => {
  await emptyTables(pool, ["ports", "address_cursors", "open_requests", "requests"]);
  return { store: new PostgresPortStore(pool), requests: new PostgresApiStore(pool) };
});
