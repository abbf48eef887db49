import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { keypairStoreContract } from "../../../test/contract/keypair-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresKeypairStore } from "./postgres-keypair-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "keypair store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

keypairStoreContract("Postgres", async () => {
  await emptyTables(pool, ["keypairs"]);
  return { store: new PostgresKeypairStore(pool), close: async () => undefined };
});
