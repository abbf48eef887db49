import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { volumeStoreContract } from "../../../test/contract/volume-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresVolumeStore } from "./postgres-volume-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "volume store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

volumeStoreContract("Postgres", async () => {
  await pool.query("truncate volumes, requests");
  return { store: new PostgresVolumeStore(pool), requests: new PostgresApiStore(pool) };
});
