import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dispatchOf, hostTree, providerOf } from "../../../test/contract/cell-fixtures.ts";
import { hostAdminContract } from "../../../test/contract/host-admin.contract.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyCellTables } from "../../../test/rigs/empty-cell.ts";
import { createPool } from "../client/pool.ts";
import { PostgresLedger } from "../ledger/postgres-ledger.ts";
import { PostgresCellStore } from "./postgres-cell-store.ts";
import { PostgresHostAdminStore } from "./postgres-host-admin-store.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "host admin test" });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

hostAdminContract("Postgres", async () => {
  await emptyCellTables(pool);
  await pool.query("truncate ratio_overrides, reported_ratios");
  const admin = new PostgresHostAdminStore(pool);
  const stores = { admin, ledger: new PostgresLedger(pool), cell: new PostgresCellStore(pool) };
  return { ...stores, advance: () => undefined, close: async () => undefined };
});

test("when reports, ratios, disabling, aggregates and claims come at once, the operators' settings hold, and nothing deadlocks", async () => {
  await emptyCellTables(pool);
  await pool.query("truncate ratio_overrides, reported_ratios");
  const admin = new PostgresHostAdminStore(pool);
  const ledger = new PostgresLedger(pool);
  const cell = new PostgresCellStore(pool);
  const uuid = "22222222-0000-4000-8000-000000000001";
  const hosts = [0, 1, 2, 3];
  const report = (vcpus: number) => ledger.reportTrees(hosts.map((host) => hostTree(host, vcpus)));
  await report(8);
  await cell.hostsUp(
    "agent-1",
    hosts.map((host) => ({ name: `host-${host}`, rootProvider: providerOf(host) })),
  );
  const claims = Array.from({ length: 24 }, (_, server) => dispatchOf({ server, task: server, hosts: [server % 4] }));
  await Promise.all([
    ...[9, 10, 11, 12].map(report),
    ...[2, 3, 4].map((ratio) =>
      admin.setRatios(hosts.map((host) => ({ rootProvider: providerOf(host), ratios: { VCPU: ratio } }))),
    ),
    ...hosts.map((host) => admin.setDisabled(`host-${host}`, true, null)),
    ...hosts.map((host) => admin.mirrorAggregates([{ rootProvider: providerOf(host), add: [uuid], remove: [] }])),
    ...claims.map((claim) => cell.dispatch([claim])),
  ]);
  await admin.setRatios(hosts.map((host) => ({ rootProvider: providerOf(host), ratios: { VCPU: 4 } })));
  await report(12);
  const { providers } = await ledger.dump();
  for (const provider of providers) {
    expect([...provider.traits]).toEqual(["COMPUTE_STATUS_DISABLED"]);
    expect([...provider.aggregates]).toEqual([uuid]);
    expect([...provider.inventories.values()]).toMatchObject([{ total: 12, allocationRatio: 4, used: 6 }]);
  }
  await admin.setRatios(hosts.map((host) => ({ rootProvider: providerOf(host), ratios: {} })));
  const back = (await ledger.dump()).providers.flatMap((provider) => [...provider.inventories.values()]);
  expect(back.map((inventory) => inventory.allocationRatio)).toEqual([1, 1, 1, 1]);
});
