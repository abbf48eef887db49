import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { claim, release } from "../../../core/ledger/allocation-change.ts";
import { consumerUuid, providerUuid, resourceClass } from "../../../core/ledger/ids.ts";
import { CONSUMER_TYPE_MIGRATION } from "../../../core/ledger/model.ts";
import type { PlacementStore } from "../../../core/stores/cell/placement-store.ts";
import {
  conductorId,
  dispatchOf,
  hostTree,
  numbered,
  providerOf,
  serverId,
  taskId,
} from "../../../test/contract/cell-fixtures.ts";
import { beginOperationOn } from "../../../test/rigs/begin-operation.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { INSTANCE } from "../../../test/rigs/ledger-builders.ts";
import { PostgresCellStore } from "../cell/postgres-cell-store.ts";
import { createPool } from "../client/pool.ts";
import { PostgresLedger } from "../ledger/postgres-ledger.ts";
import { createPlacementStore } from "./postgres-placement-store.ts";

let database: TestDatabase;
let pool: Pool;
let cell: PostgresCellStore;
let store: PlacementStore;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "under way test" });
  const ledger = new PostgresLedger(pool);
  cell = new PostgresCellStore(pool);
  store = createPlacementStore(pool, ledger);
  await ledger.putTrees([0, 1].map((host) => hostTree(host, 8)));
  await cell.renewLease({ id: conductorId(0), name: "c", leaseMs: 3_600_000 });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const MOVE = numbered(0xe, 1);
const server = consumerUuid(serverId(1));
const move = consumerUuid(MOVE);
const releaseOf = (uuid: typeof server) => store.applyAllocations(release(uuid, INSTANCE));

test("allocations of a server or a move are not written while a task relies on them, and are afterwards", async () => {
  await cell.dispatch([dispatchOf({ server: 1, task: 1, hosts: [0] })]);
  expect(await releaseOf(server)).toEqual({ kind: "under-way", consumer: server, what: "build" });
  const [taken] = await cell.takeTasks(conductorId(0), [taskId(1)]);
  await cell.commitActive([{ taskId: taskId(1), serverUuid: serverId(1), epoch: taken?.epoch ?? 0, selection: 0 }]);
  await beginOperationOn(cell, { server: 1, kind: "resize", hosts: [1], vcpus: 2, taskId: MOVE });
  expect(await releaseOf(server)).toEqual({ kind: "under-way", consumer: server, what: "resize" });
  expect(await releaseOf(move)).toEqual({ kind: "under-way", consumer: move, what: "move" });
  const reshaped = await store.reshape({ inventories: [], change: release(move, INSTANCE) });
  expect(reshaped).toEqual({ kind: "refused", outcome: { kind: "under-way", consumer: move, what: "move" } });
  expect(await cell.holdings([serverId(1), MOVE])).toMatchObject([
    { items: [{ amount: 2 }] },
    { items: [{ amount: 1 }] },
  ]);
  await pool.query("update tasks set ended_at = now(), outcome = 'error' where server_uuid = $1", [serverId(1)]);
  await pool.query("update migrations set ended = true");
  expect(await releaseOf(server)).toMatchObject({ kind: "committed" });
  expect(await releaseOf(move)).toMatchObject({ kind: "committed" });
});

test("allocations of other clients' consumers are written whatever their type", async () => {
  const other = consumerUuid("c0000000-0000-4000-8000-000000000009");
  const owner = { ...INSTANCE, type: CONSUMER_TYPE_MIGRATION };
  const items = [{ provider: providerUuid(providerOf(1)), resourceClass: resourceClass("VCPU"), amount: 1 }];
  expect(await store.applyAllocations(claim(other, owner, items))).toMatchObject({ kind: "committed" });
  expect(await store.applyAllocations(release(other, owner))).toMatchObject({ kind: "committed" });
});
