import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { imageStoreContract } from "../../../test/contract/image-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresImageStore } from "./postgres-image-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "image store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

imageStoreContract("Postgres", async () => {
  await emptyTables(pool, ["images", "open_requests", "requests"]);
  return { store: new PostgresImageStore(pool), requests: new PostgresApiStore(pool) };
});
