import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { sharedKeyStoreContract } from "../../../test/contract/shared-key-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresSharedKeyStore } from "./postgres-shared-key-store.ts";

let database: TestDatabase;
let pools: readonly Pool[];
beforeAll(async () => {
  database = await freshDatabase("api");
  pools = ["one", "two"].map((name) => createPool({ url: database.url, applicationName: `shared keys of ${name}` }));
});
afterAll(async () => {
  for (const pool of pools) await pool.end();
  await database.drop();
});

sharedKeyStoreContract("Postgres", async () => {
  await pools[0]?.query("truncate shared_keys");
  return pools.map((pool) => new PostgresSharedKeyStore(pool));
});
