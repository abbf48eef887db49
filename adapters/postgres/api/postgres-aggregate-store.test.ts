import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { aggregateStoreContract } from "../../../test/contract/aggregate-store.contract.ts";
import { ratioStoreContract } from "../../../test/contract/ratio-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresAggregateStore } from "./postgres-aggregate-store.ts";
import { PostgresRatioStore } from "./postgres-ratio-store.ts";

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

const empty = () =>
  emptyTables(pool, ["aggregates", "aggregate_hosts", "aggregate_ratios", "host_ratios", "former_aggregates"]);

aggregateStoreContract("Postgres", async () => {
  await empty();
  return new PostgresAggregateStore(pool);
});

ratioStoreContract("Postgres", async () => {
  await empty();
  return { aggregates: new PostgresAggregateStore(pool), ratios: new PostgresRatioStore(pool) };
});
