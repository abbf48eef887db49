import type { Pool } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { claim } from "../../../core/ledger/allocation-change.ts";
import {
  consumerUuid,
  type ProviderUuid,
  providerUuid,
  resourceClass,
  type Trait,
  trait,
} from "../../../core/ledger/ids.ts";
import type { Inventory } from "../../../core/ledger/model.ts";
import { freshDatabase, type TestDatabase } from "../../../test/rigs/databases.ts";
import { emptyLedgerTables } from "../../../test/rigs/empty-ledger.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { INSTANCE, inventory, item, spec, tree } from "../../../test/rigs/ledger-builders.ts";
import { createPool } from "../client/pool.ts";
import { createPlacementStore } from "../placement/postgres-placement-store.ts";
import { PostgresLedger } from "./postgres-ledger.ts";

const HOST = providerUuid("a0000000-0000-4000-8000-000000000001");
const GPU = providerUuid("a0000000-0000-4000-8000-000000000002");
const VCPU = resourceClass("VCPU");
const SERVER = consumerUuid("c0000000-0000-4000-8000-000000000001");

/** The report of a host with a GPU. */
const report = (vcpus: number, options: { traits?: string[]; more?: Record<string, Inventory>; gpus?: number } = {}) =>
  tree(
    spec(HOST, "host", { inventories: { VCPU: inventory(vcpus), ...options.more }, traits: options.traits ?? [] }),
    spec(GPU, "host_gpu", { parent: HOST, inventories: { VGPU: inventory(options.gpus ?? 4) } }),
  );

/** A pool that lets something happen once, right after the stored trees have been read without a lock. */
function interrupted(pool: Pool, between: () => Promise<unknown>): Pool {
  let isDone = false;
  return new Proxy(pool, {
    get: (target, key) => {
      if (key !== "query") {
        const value = Reflect.get(target, key) as unknown;
        return typeof value === "function" ? value.bind(target) : value;
      }
      return async (...query: [never]) => {
        const answer = await (target.query as (...given: [never]) => Promise<unknown>)(...query);
        if (!isDone && JSON.stringify(query).includes("ledger_read_trees")) {
          isDone = true;
          await between();
        }
        return answer;
      };
    },
  });
}

describe("a report that changes inventories and traits only", () => {
  let database: TestDatabase;
  let pool: Pool;
  let ledger: PostgresLedger;
  let placement: ReturnType<typeof createPlacementStore>;
  beforeAll(async () => {
    database = await freshDatabase("cell");
    pool = createPool({ url: database.url, applicationName: "change trees test" });
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });
  beforeEach(async () => {
    ledger = new PostgresLedger(pool);
    placement = createPlacementStore(pool, ledger);
    await ledger.reportTrees([report(8)]);
  });
  afterEach(() => emptyLedgerTables(pool));

  const find = async (uuid: ProviderUuid) => (await ledger.dump()).providers.find((one) => one.uuid === uuid)!;
  const whileRead = (between: () => Promise<unknown>) => new PostgresLedger(interrupted(pool, between));
  const addTrait = async (name: string, uuid = HOST) => {
    await placement.createTrait(trait(name));
    const now = (await placement.traits(uuid))!;
    expect(await placement.setTraits(uuid, now.generation, [...now.value, trait(name)] as Trait[])).toMatchObject({
      kind: "written",
    });
  };

  it("raises the generation of the provider that changes, once, and of no other one", async () => {
    const [host, gpu] = [await find(HOST), await find(GPU)];
    // The trait and the class are unknown to the cell, so the whole tree is written.
    const first = report(8, { traits: ["CUSTOM_A"], more: { DISK_GB: inventory(9) } });
    expect(await ledger.reportTrees([first])).toEqual([{ kind: "replaced", kept: [] }]);
    const second = report(12, { traits: [], more: {} });
    expect(await ledger.reportTrees([second])).toEqual([{ kind: "replaced", kept: [] }]);
    const third = report(16, { traits: ["CUSTOM_A"], more: { DISK_GB: inventory(5) } });
    expect(await ledger.reportTrees([third])).toEqual([{ kind: "replaced", kept: [] }]);
    const after = await find(HOST);
    expect(after).toMatchObject({ generation: host.generation + 3, traits: new Set(["CUSTOM_A"]) });
    expect(after.inventories.get(VCPU)).toEqual({ ...inventory(16), used: 0 });
    expect(after.inventories.get(resourceClass("DISK_GB"))).toEqual({ ...inventory(5), used: 0 });
    expect(await find(GPU)).toEqual(gpu);
    expect(await ledger.reportTrees([third])).toEqual([{ kind: "unchanged", kept: [] }]);
  });

  it("takes no lock on the other providers of its tree", async () => {
    const client = await pool.connect();
    try {
      await client.query("begin");
      await client.query("select from resource_providers where uuid = $1 for update", [GPU]);
      expect(await ledger.reportTrees([report(9)])).toEqual([{ kind: "replaced", kept: [] }]);
    } finally {
      await client.query("rollback");
      client.release();
    }
    expect((await find(HOST)).inventories.get(VCPU)!.total).toBe(9);
  });

  it("keeps a trait that an operator sets between its reading and its writing", async () => {
    const racing = whileRead(() => addTrait("CUSTOM_BY_OPERATOR"));
    expect(await racing.reportTrees([report(9)])).toEqual([{ kind: "replaced", kept: [] }]);
    const host = await find(HOST);
    expect(host.traits).toEqual(new Set(["CUSTOM_BY_OPERATOR"]));
    expect(host.inventories.get(VCPU)!.total).toBe(9);
  });

  it.each([
    ["trait", "traits", report(9, { traits: ["CUSTOM_GOING"] })],
    ["class", "resource_classes", report(9, { more: { CUSTOM_GOING: inventory(3) } })],
  ])("is written although its %s is deleted at that moment", async (_, table, changed) => {
    await pool.query(`insert into ${table} (name) values ('CUSTOM_GOING')`);
    const client = await pool.connect();
    try {
      await client.query("begin");
      await client.query(`delete from ${table} where name = 'CUSTOM_GOING'`);
      const reported = ledger.reportTrees([changed]);
      reported.catch(() => {});
      await eventually("the report to wait for the deletion", async () => {
        const { rows } = await pool.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%ledger_change_trees%'",
        );
        return rows.length > 0;
      });
      await client.query("commit");
      expect(await reported).toEqual([{ kind: "replaced", kept: [] }]);
    } finally {
      client.release(true);
    }
    const { traits, inventories } = await find(HOST);
    expect([...traits, ...inventories.keys()]).toContain("CUSTOM_GOING");
    expect(inventories.get(VCPU)!.total).toBe(9);
  });

  it("keeps the resources that a claim takes between its reading and its writing, and says so", async () => {
    const racing = whileRead(() => ledger.applyAllocations([claim(SERVER, INSTANCE, [item(HOST, "VCPU", 6)])]));
    expect(await racing.reportTrees([report(4)])).toMatchObject([
      { kind: "replaced", kept: [{ provider: HOST, resourceClass: VCPU, used: 6, capacity: 4, byReport: true }] },
    ]);
    expect((await find(HOST)).inventories.get(VCPU)).toMatchObject({ total: 4, used: 6 });
  });

  it("keeps a class that a claim takes between its reading and its writing", async () => {
    await ledger.reportTrees([report(8, { more: { DISK_GB: inventory(5) } })]);
    const racing = whileRead(() => ledger.applyAllocations([claim(SERVER, INSTANCE, [item(HOST, "DISK_GB", 2)])]));
    expect(await racing.reportTrees([report(8)])).toMatchObject([
      { kind: "replaced", kept: [{ used: 2, capacity: null }] },
    ]);
    expect((await find(HOST)).inventories.get(resourceClass("DISK_GB"))).toMatchObject({
      total: 5,
      reserved: 5,
      used: 2,
    });
  });

  it("applies ratios that an operator sets between its reading and its writing", async () => {
    const racing = whileRead(() => pool.query("select cell_set_ratios($1, $2, $3, $4)", [[HOST], [1], ["VCPU"], [4]]));
    expect(await racing.reportTrees([report(9)])).toEqual([{ kind: "replaced", kept: [] }]);
    expect((await find(HOST)).inventories.get(VCPU)).toMatchObject({ total: 9, allocationRatio: 4 });
    // Under the operator's ratio, too, only the change is written.
    expect(await ledger.reportTrees([report(10)])).toEqual([{ kind: "replaced", kept: [] }]);
    expect((await find(HOST)).inventories.get(VCPU)).toMatchObject({ total: 10, allocationRatio: 4 });
    await pool.query("select cell_set_ratios($1, $2, $3, $4)", [[HOST], [], [], []]);
    expect((await find(HOST)).inventories.get(VCPU)).toMatchObject({ total: 10, allocationRatio: 1 });
  });

  it("meets another report of the same host: the later one counts, and both together count as one after the other", async () => {
    const racing = whileRead(() => ledger.reportTrees([report(8, { traits: ["CUSTOM_OTHER"], gpus: 2 })]));
    expect(await racing.reportTrees([report(9)])).toEqual([{ kind: "replaced", kept: [] }]);
    const host = await find(HOST);
    expect([...host.traits]).toEqual([]);
    expect(host.inventories.get(VCPU)!.total).toBe(9);
    expect((await find(GPU)).inventories.get(resourceClass("VGPU"))!.total).toBe(4);
  });

  it("writes all trees of a batch, also when one of them has lost a provider and has to be merged as a whole", async () => {
    const others = Array.from({ length: 5 }, (_, index) => {
      const uuid = providerUuid(`b0000000-0000-4000-8000-00000000000${index}`);
      return (vcpus: number) => tree(spec(uuid, `other-${index}`, { inventories: { VCPU: inventory(vcpus) } }));
    });
    await ledger.reportTrees(others.map((of) => of(4)));
    const outcomes = await ledger.reportTrees([
      ...others.map((of, index) => of(4 + index)),
      tree(spec(HOST, "host", { inventories: { VCPU: inventory(3) } })),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["unchanged", ...Array(5).fill("replaced")]);
    const { providers } = await ledger.dump();
    expect(providers.map(({ name, inventories }) => [name, inventories.get(VCPU)?.total]).sort()).toEqual([
      ["host", 3],
      ...others.map((_, index) => [`other-${index}`, 4 + index]),
    ]);
  });
});
