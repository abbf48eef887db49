import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { settingsStoreContract } from "../../../test/contract/settings-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresSettingsStore } from "./postgres-settings-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "settings store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

settingsStoreContract("Postgres", async () => {
  await emptyTables(pool, ["settings"]);
  return new PostgresSettingsStore(pool);
});
