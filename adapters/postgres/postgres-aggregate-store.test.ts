import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { aggregateStoreContract } from "../../test/contract/aggregate-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../test/databases.ts";
import { createPool } from "./pool.ts";
import { PostgresAggregateStore } from "./postgres-aggregate-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "aggregate store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

aggregateStoreContract("Postgres", async () => {
  await pool.query("truncate aggregates, aggregate_hosts, aggregate_ratios, former_aggregates");
  return new PostgresAggregateStore(pool);
});
