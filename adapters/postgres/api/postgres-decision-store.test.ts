import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { decisionStoreContract } from "../../../test/contract/decision-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresDecisionStore } from "./postgres-decision-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "decision store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

decisionStoreContract("Postgres", async () => {
  await pool.query("truncate decisions restart identity");
  return new PostgresDecisionStore(pool);
});
