import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { hostMapStoreContract } from "../../../test/contract/host-map-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresHostMapStore } from "./postgres-host-map-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "host map test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

hostMapStoreContract("Postgres", async () => {
  await emptyTables(pool, ["host_map"]);
  return new PostgresHostMapStore(pool);
});
