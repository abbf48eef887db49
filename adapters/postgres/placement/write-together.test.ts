import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { claim } from "../../../core/ledger/allocation-change.ts";
import { aggregateUuid, providerUuid, resourceClass, trait } from "../../../core/ledger/ids.ts";
import type { PlacementStore } from "../../../core/stores/cell/placement-store.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { INSTANCE, inventory, item } from "../../../test/rigs/ledger-builders.ts";
import { createPool } from "../client/pool.ts";
import { PostgresLedger } from "../ledger/postgres-ledger.ts";
import { createPlacementStore } from "./postgres-placement-store.ts";

let database: TestDatabase;
let pool: Pool;
let store: PlacementStore;
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "write together test" });
  store = createPlacementStore(pool, new PostgresLedger(pool));
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const host = (at: number) => providerUuid(`a0000000-0000-4000-8000-${String(at).padStart(12, "0")}`);
const consumer = "c0000000-0000-4000-8000-000000000001" as Parameters<typeof claim>[0];
const rack = aggregateUuid("b0000000-0000-4000-8000-000000000001");
const [VCPU, DISK, NONE] = [resourceClass("VCPU"), resourceClass("DISK_GB"), resourceClass("CUSTOM_NONE")];
const [AVX, SSE] = [trait("HW_CPU_X86_AVX"), trait("HW_CPU_X86_SSE")];
const create = (at: number, parent: number | null = null, name = `host${at}`) =>
  store.createProvider({ uuid: host(at), name, parent: parent === null ? null : host(parent) });
const both = new Map([
  [VCPU, inventory(8)],
  [DISK, inventory(100)],
]);
const onlyDisk = new Map([[DISK, inventory(50)]]);

test("each of several concurrent writes of all kinds is done, or refused, as if it were alone", async () => {
  const created = await Promise.all([create(1), create(2), create(3), create(4), create(5)]);
  expect(created.map(({ kind }) => kind)).toEqual(Array(5).fill("created"));
  const more = await Promise.all([create(6, 1), create(7, 99), create(8, 8), create(1), create(9, null, "host2")]);
  expect(more.map(({ kind }) => kind)).toEqual(["created", "unknown-parent", "own-parent", "uuid-taken", "name-taken"]);
  expect(more[0]).toMatchObject({ provider: { parent: host(1), root: host(1), generation: 0 } });

  const written = (generation: number) => expect.objectContaining({ kind: "written", generation });
  const filled = await Promise.all([
    store.setInventories(host(1), 0, both),
    store.setInventories(host(2), 0, both),
    store.setTraits(host(3), 0, [AVX, SSE]),
    store.setTraits(host(4), undefined, []),
    store.setAggregates(host(5), undefined, [rack]),
    store.setAggregates(host(6), 0, [rack]),
    store.setTraits(host(7), 0, [AVX]),
  ]);
  const [one, zero, gone] = [written(1), written(0), { kind: "not-found" }];
  expect(filled).toEqual([one, one, one, zero, zero, one, gone]);

  const claims = [claim(consumer, INSTANCE, [item(host(1), "VCPU", 1)])];
  expect(await Promise.all(claims.map((change) => store.applyAllocations(change)))).toMatchObject([
    { kind: "committed" },
  ]);
  const changed = await Promise.all([
    store.setInventories(host(1), 1, onlyDisk),
    store.setInventories(host(2), 1, onlyDisk),
    store.setInventories(host(4), 0, new Map([[NONE, inventory(1)]])),
    store.setTraits(host(3), 1, [SSE, AVX]),
    store.setTraits(host(5), 0, [trait("CUSTOM_UNKNOWN")]),
    store.setAggregates(host(6), 7, []),
    store.setTraits(host(3), 1, [SSE]),
  ]);
  expect(changed).toEqual([
    { kind: "in-use", resourceClasses: [VCPU] },
    written(2),
    { kind: "unknown-class", resourceClass: NONE },
    written(1),
    { kind: "unknown-names", names: ["CUSTOM_UNKNOWN"] },
    { kind: "generation-conflict", actual: 1 },
    written(2),
  ]);
  expect([...(await store.inventories(host(2)))!.value]).toEqual([[DISK, expect.objectContaining({ total: 50 })]]);
  expect([...(await store.inventories(host(1)))!.value.keys()]).toEqual([VCPU, DISK]);
  expect((await store.traits(host(3)))!.value).toEqual([SSE]);
  expect((await store.aggregates(host(5)))!.value).toEqual([rack]);
});
