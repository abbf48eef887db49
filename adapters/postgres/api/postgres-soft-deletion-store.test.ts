import type { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { softDeletionStoreContract } from "../../../test/contract/soft-deletion-store.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";
import { PostgresQuotaStore } from "./postgres-quota-store.ts";
import { PostgresSoftDeletionStore } from "./postgres-soft-deletion-store.ts";

let database: TestDatabase;
let pools: readonly [Pool, Pool];
beforeAll(async () => {
  database = await freshDatabase("api");
  const open = (name: string) => createPool({ url: database.url, applicationName: name, findsByKeys: true });
  pools = [open("soft deletion store test"), open("another api of the soft deletion store test")];
});
afterAll(async () => {
  for (const pool of pools) await pool.end();
  await database.drop();
});

softDeletionStoreContract("Postgres", async () => {
  const [pool, other] = pools;
  await emptyTables(pool, [
    "quotas",
    "quota_classes",
    "quota_usages",
    "quota_class_usages",
    "charged_resizes",
    "soft_deletions",
    "open_requests",
    "requests",
  ]);
  return {
    stores: [new PostgresSoftDeletionStore(pool), new PostgresSoftDeletionStore(other)],
    requests: new PostgresApiStore(pool),
    quotas: new PostgresQuotaStore(pool),
    // Time passes by moving everything that is noted into the past.
    pass: async (ms) => {
      await pool.query(
        "update soft_deletions set deleted_at = deleted_at - $1::float8 * interval '1 ms', looked_at = looked_at - $1::float8 * interval '1 ms'",
        [ms],
      );
    },
  };
});
