import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { AT_A_TIME, quotaStoreContract } from "../../../test/contract/quota-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresQuotaStore } from "./postgres-quota-store.ts";

let database: TestDatabase;
let pools: readonly [Pool, Pool];
beforeAll(async () => {
  database = await freshDatabase("api");
  const open = (name: string) =>
    createPool({ url: database.url, applicationName: name, connectionsMax: AT_A_TIME, findsByKeys: true });
  pools = [open("quota store test"), open("another api of the quota store test")];
});
afterAll(async () => {
  for (const pool of pools) await pool.end();
  await database.drop();
});

quotaStoreContract("Postgres", async () => {
  const [pool, other] = pools;
  await pool.query("truncate quotas, quota_classes, quota_usages, charged_resizes, requests");
  return {
    store: new PostgresQuotaStore(pool),
    requests: [new PostgresApiStore(pool), new PostgresApiStore(other)],
    close: async () => undefined,
  };
});
