import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiStoreContract } from "../../../test/contract/api-store.contract.ts";
import { goneFrom, serverId, serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyTables } from "../../../test/rigs/empty-tables.ts";
import { createPool } from "../client/pool.ts";
import { PostgresApiStore } from "./postgres-api-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("api");
  pool = createPool({ url: database.url, applicationName: "api store test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

apiStoreContract("Postgres", async () => {
  await emptyTables(pool, ["cells", "flavor_projects", "flavors", "open_requests", "requests"]);
  return { store: new PostgresApiStore(pool), close: async () => undefined };
});

test("of three sweeps at once only one gets each stale request", async () => {
  await pool.query("truncate requests");
  const store = new PostgresApiStore(pool);
  const uuids = Array.from({ length: 60 }, (_, server) => serverId(server));
  await store.accept(uuids.map((_, server) => serverSpec(server)));
  await pool.query("update requests set updated_at = updated_at - interval '1 minute'");
  const swept = (await Promise.all([1, 2, 3].map(() => store.stale(30_000, 60)))).flat();
  const rest = await store.stale(30_000, 60);
  expect([...swept, ...rest].map((record) => record.serverUuid).sort()).toEqual(uuids.sort());
  expect(await store.stale(30_000, 60)).toEqual([]);
});

test("finds requests by their keys even with plans from a time when the table was nearly empty", async () => {
  await pool.query("truncate requests");
  const keyed = createPool({ url: database.url, applicationName: "keyed", connectionsMax: 1, findsByKeys: true });
  const store = new PostgresApiStore(keyed);
  const readWhole = async (): Promise<number> => {
    await keyed.query("select pg_stat_force_next_flush()");
    const { rows } = await keyed.query("select seq_scan from pg_stat_user_tables where relname = 'requests'");
    return rows[0].seq_scan;
  };
  try {
    const before = await readWhole();
    // Postgres settles on a statement's plan when it runs for the sixth time.
    for (let server = 0; server < 8; server += 1) {
      const uuid = serverId(server);
      await store.acceptWithin([[serverSpec(server)]], { openMax: 100, quotas: null });
      await store.assignCells([{ serverUuid: uuid, from: null, to: "east" }]);
      await store.failRequests([{ serverUuid: uuid, cell: "west", fault: "none" }]);
      await store.markArrived("east", [uuid]);
      await store.takeLost("east", [uuid], 0);
      await store.requests([uuid]);
      await store.placeable([uuid], { specBytesMax: 1_000, pageBytesMax: 1_000 });
      await store.putOff([{ serverUuid: uuid, delayMs: 0 }]);
      await store.cancel(uuid, "req-a");
      await store.markDeleted(goneFrom("east", [uuid]));
      await store.stale(0, 10);
      await store.unarrived("east", 0, 10);
    }
    expect(await readWhole()).toBe(before);
  } finally {
    await keyed.end();
  }
});

test("a store whose database is away reports that, and can be closed more than once", async () => {
  const url = new URL(database.url);
  url.port = "1";
  const store = new PostgresApiStore(createPool({ url: url.href, applicationName: "api store test" }));
  await expect(store.ping()).rejects.toMatchObject({ name: "StoreError", code: "unavailable", operation: "ping" });
  await store.close();
  await store.close();
});
