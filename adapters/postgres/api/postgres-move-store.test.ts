import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { moveStoreContract } from "../../../test/contract/move-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresMoveStore } from "./postgres-move-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "move store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

moveStoreContract("Postgres", async () => {
  await emptyTables(pool, ["moves"]);
  return { store: new PostgresMoveStore(pool), close: async () => undefined };
});
