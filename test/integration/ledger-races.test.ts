import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { type AllocationChange, claim, release, swap } from "../../core/ledger/allocation-change.ts";
import { consumerUuid, providerUuid } from "../../core/ledger/ids.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { emptyLedgerTables } from "../rigs/empty-ledger.ts";
import { change, INSTANCE, inventory, item, move, replace, spec, tree } from "../rigs/ledger-builders.ts";
import { brokenSums, overCapacity } from "../rigs/ledger-laws.ts";
import { LedgerSession, meet } from "./ledger-sessions.ts";

const A = providerUuid("a0000000-0000-4000-8000-000000000001");
const B = providerUuid("b0000000-0000-4000-8000-000000000001");
const CHILD = providerUuid("b0000000-0000-4000-8000-000000000002");
const server = (number: number) => consumerUuid(`c0000000-0000-4000-8000-${String(number).padStart(12, "0")}`);
const treeA = (vcpus: number) => tree(spec(A, "a", { inventories: { VCPU: inventory(vcpus, { maxUnit: 100 }) } }));
const bare = tree(spec(B, "b", { inventories: { VCPU: inventory(8) } }));
const treeB = tree(
  spec(B, "b", { inventories: { VCPU: inventory(8) } }),
  spec(CHILD, "child", { parent: B, inventories: { VCPU: inventory(8) } }),
);
const onA = (amount: number) => [item(A, "VCPU", amount)];
const onB = (amount: number) => [item(B, "VCPU", amount)];

let database: TestDatabase;
let pool: Pool;
let ledger: PostgresLedger;
let sessions: { readonly first: LedgerSession; readonly second: LedgerSession; readonly observer: LedgerSession };
beforeAll(async () => {
  database = await freshDatabase("cell");
  pool = createPool({ url: database.url, applicationName: "ledger races" });
  ledger = new PostgresLedger(pool);
  const [first, second, observer] = await Promise.all([1, 2, 3].map(() => LedgerSession.open(database.url)));
  sessions = { first: first!, second: second!, observer: observer! };
});
afterAll(async () => {
  await Promise.all(Object.values(sessions).map((session) => session.close()));
  await pool.end();
  await database.drop();
});
beforeEach(async () => {
  await emptyLedgerTables(pool);
  await ledger.putTrees([treeA(8), treeB]);
});

const lawful = async (): Promise<void> => {
  const dump = await ledger.dump();
  expect(brokenSums(dump)).toEqual([]);
  expect(overCapacity(dump)).toEqual([]);
};

describe("races on the ledger", () => {
  it("two claims for the last unit", async () => {
    await ledger.applyAllocations([claim(server(1), INSTANCE, onA(7))]);
    const outcome = await meet(
      sessions,
      (session) => session.apply(claim(server(2), INSTANCE, onA(1))),
      (session) => session.apply(claim(server(3), INSTANCE, onA(1))),
    );
    expect(outcome.first).toMatchObject([{ kind: "committed" }]);
    expect(outcome.second).toMatchObject([{ kind: "no-capacity", shortfalls: [{ requested: 1, used: 8, limit: 8 }] }]);
    await lawful();
  });

  it("two claims for the last unit, of which the first is rolled back", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.apply(claim(server(2), INSTANCE, onA(8))),
      (session) => session.apply(claim(server(3), INSTANCE, onA(8))),
      "rollback",
    );
    expect(outcome.second).toMatchObject([{ kind: "committed" }]);
    await lawful();
  });

  it("two first claims of one consumer", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.apply(claim(server(1), INSTANCE, onA(1))),
      (session) => session.apply(claim(server(1), INSTANCE, onB(1))),
    );
    expect(outcome.second).toEqual([{ kind: "consumer-conflict", consumer: server(1), expected: null, actual: 1 }]);
    expect(await ledger.allocationsOf(server(1))).toEqual(onA(1));
    await lawful();
  });

  it("two first claims of one consumer, of which the first is rolled back", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.apply(claim(server(1), INSTANCE, onA(1))),
      (session) => session.apply(claim(server(1), INSTANCE, onB(1))),
      "rollback",
    );
    expect(outcome.second).toMatchObject([{ kind: "committed" }]);
    await lawful();
  });

  it("two lone claims for the last units", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.claimAlone(claim(server(2), INSTANCE, onA(5))),
      (session) => session.claimAlone(claim(server(3), INSTANCE, onA(5))),
    );
    expect(outcome).toEqual({ first: true, second: false });
    expect(await ledger.allocationsOf(server(3))).toEqual([]);
    await lawful();
  });

  it("two lone claims for the last units, of which the first is rolled back", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.claimAlone(claim(server(2), INSTANCE, onA(5))),
      (session) => session.claimAlone(claim(server(3), INSTANCE, onA(5))),
      "rollback",
    );
    expect(outcome.second).toBe(true);
    expect((await ledger.dump()).consumers.map(({ uuid }) => uuid)).toEqual([server(3)]);
    await lawful();
  });

  it("a lone claim against another first claim of its consumer", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.apply(claim(server(1), INSTANCE, onA(1))),
      (session) => session.claimAlone(claim(server(1), INSTANCE, onB(1))),
    );
    expect(outcome.second).toBe(false);
    expect(await ledger.allocationsOf(server(1))).toEqual(onA(1));
    await lawful();
  });

  it("a lone claim against an inventory that shrinks", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.putTrees(treeA(4)),
      (session) => session.claimAlone(claim(server(1), INSTANCE, onA(5))),
    );
    expect(outcome.second).toBe(false);
    await lawful();
  });

  it("lone claims and batches that list the classes of one provider in opposite orders", async () => {
    const inventories = Object.fromEntries(["VCPU", "MEMORY_MB", "DISK_GB"].map((name) => [name, inventory(1_000)]));
    await ledger.putTrees([tree(spec(A, "a", { inventories }))]);
    const classes = ["VCPU", "MEMORY_MB", "DISK_GB"];
    const each = async (work: (number: number) => Promise<unknown>, from: number): Promise<void> => {
      for (let number = from; number < from + 50; number += 1) await work(number);
    };
    const items = (names: readonly string[]) => names.map((name) => item(A, name, 1));
    await Promise.all([
      each((number) => sessions.first.claimAlone(claim(server(number), INSTANCE, items(classes))), 0),
      each((number) => sessions.second.claimAlone(claim(server(number), INSTANCE, items(classes.toReversed()))), 100),
      each((number) => sessions.observer.apply(claim(server(number), INSTANCE, items(classes.toReversed()))), 200),
    ]);
    const dump = await ledger.dump();
    expect(dump.consumers).toHaveLength(150);
    await lawful();
  });

  it("a first claim of a consumer against the release of its previous allocations", async () => {
    await ledger.applyAllocations([claim(server(1), INSTANCE, onA(8))]);
    const outcome = await meet(
      sessions,
      (session) => session.apply(release(server(1), INSTANCE)),
      (session) => session.apply(claim(server(1), INSTANCE, onA(8))),
    );
    expect(outcome.second).toEqual([{ kind: "committed", generations: new Map([[server(1), 1]]) }]);
    await lawful();
  });

  it("a release against a first claim that is not yet committed", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.apply(claim(server(1), INSTANCE, onA(8))),
      (session) => session.apply(release(server(1), INSTANCE), claim(server(2), INSTANCE, onA(8))),
    );
    expect(outcome.second.map(({ kind }) => kind)).toEqual(["committed", "committed"]);
    expect((await ledger.dump()).consumers.map(({ uuid }) => uuid)).toEqual([server(2)]);
    await lawful();
  });

  it("a claim against an inventory that shrinks", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.putTrees(treeA(4)),
      (session) => session.apply(claim(server(1), INSTANCE, onA(5))),
    );
    expect(outcome.second).toMatchObject([{ kind: "no-capacity", shortfalls: [{ limit: 4 }] }]);
    await lawful();
  });

  it("an inventory that shrinks against a claim", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.apply(claim(server(1), INSTANCE, onA(5))),
      (session) => session.putTrees(treeA(4)),
    );
    expect(outcome.second).toMatchObject([{ kind: "replaced" }]);
    expect(brokenSums(await ledger.dump())).toEqual([]);
  });

  it("a claim against the removal of its provider", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.putTrees(bare),
      (session) => session.apply(claim(server(1), INSTANCE, [item(CHILD, "VCPU", 1)])),
    );
    expect(outcome.first).toMatchObject([{ kind: "replaced" }]);
    expect(["unknown-provider", "unknown-inventory"]).toContain(outcome.second[0]?.kind);
    await lawful();
  });

  it("the removal of a provider against a claim on it", async () => {
    const outcome = await meet(
      sessions,
      (session) => session.apply(claim(server(1), INSTANCE, [item(CHILD, "VCPU", 1)])),
      (session) => session.putTrees(bare),
    );
    expect(outcome.second).toEqual([{ kind: "in-use", provider: CHILD, resourceClass: null }]);
    await lawful();
  });

  it("two reports of one new tree", async () => {
    const fresh = tree(spec(providerUuid("d0000000-0000-4000-8000-000000000001"), "new", { expected: null }));
    const outcome = await meet(
      sessions,
      (session) => session.putTrees(fresh),
      (session) => session.putTrees(fresh),
    );
    expect([...outcome.first, ...outcome.second].map(({ kind }) => kind)).toEqual(["replaced", "generation-conflict"]);
  });

  it("a move against the release of the same consumer", async () => {
    await ledger.applyAllocations([claim(server(1), INSTANCE, onA(3))]);
    const outcome = await meet(
      sessions,
      (session) => session.apply(change(move(server(1), server(2)))),
      (session) => session.apply(release(server(1), INSTANCE)),
    );
    expect([...outcome.first, ...outcome.second].map(({ kind }) => kind)).toEqual(["committed", "committed"]);
    expect((await ledger.dump()).consumers).toMatchObject([{ uuid: server(2), items: onA(3) }]);
    await lawful();
  });

  it("the release of a consumer against its move", async () => {
    await ledger.applyAllocations([claim(server(1), INSTANCE, onA(3))]);
    const outcome = await meet(
      sessions,
      (session) => session.apply(release(server(1), INSTANCE)),
      (session) => session.apply(change(move(server(1), server(2)), replace(server(3), null, onB(1)))),
    );
    expect(outcome.second).toEqual([{ kind: "consumer-conflict", consumer: server(1), expected: "any", actual: null }]);
    expect((await ledger.dump()).consumers).toEqual([]);
    await lawful();
  });

  it("two updates of one consumer at the same generation", async () => {
    await ledger.applyAllocations([claim(server(1), INSTANCE, onA(1))]);
    const outcome = await meet(
      sessions,
      (session) => session.apply(change(replace(server(1), 1, onA(2)))),
      (session) => session.apply(change(replace(server(1), 1, onA(3)))),
    );
    expect(outcome.second).toEqual([{ kind: "consumer-conflict", consumer: server(1), expected: 1, actual: 2 }]);
    await lawful();
  });

  it("a claim that raises generations against a report at the old one", async () => {
    const report = tree(spec(A, "a", { expected: 0, inventories: { VCPU: inventory(9) } }));
    const outcome = await meet(
      sessions,
      (session) => session.apply({ ...claim(server(1), INSTANCE, onA(1)), bumpProviders: true }),
      (session) => session.putTrees(report),
    );
    expect(outcome.second).toEqual([{ kind: "generation-conflict", provider: A, expected: 0, actual: 1 }]);
    await lawful();
  });

  it("swaps in opposite directions, batched in opposite orders", async () => {
    await ledger.putTrees([treeA(100)]);
    const wide = spec(B, "b", { inventories: { VCPU: inventory(100) } });
    await ledger.putTrees([tree(wide)]);
    const numbers = Array.from({ length: 20 }, (_, index) => index + 1);
    await ledger.applyAllocations(
      numbers.map((number) => claim(server(number), INSTANCE, number % 2 === 0 ? onA(2) : onB(2))),
    );
    const odd = numbers.filter((number) => number % 2 === 1).map((number) => swap(server(number), INSTANCE, onA(2)));
    const even = numbers.filter((number) => number % 2 === 0).map((number) => swap(server(number), INSTANCE, onB(2)));
    // A deadlock would reject, because these sessions retry nothing.
    for (let round = 0; round < 10; round += 1) {
      const answers = await Promise.all([sessions.first.apply(...odd), sessions.second.apply(...even.toReversed())]);
      expect(new Set(answers.flat().map(({ kind }) => kind))).toEqual(new Set(["committed"]));
      await Promise.all([
        sessions.second.apply(
          ...odd.map(({ steps }) => ({ steps: steps.map((step) => ({ ...step, items: onB(2) })) })),
        ),
        sessions.first.apply(
          ...even.map(({ steps }) => ({ steps: steps.map((step) => ({ ...step, items: onA(2) })) })),
        ),
      ]);
    }
    await lawful();
  });

  it("a hundred claims for eight units over ten connections", async () => {
    const claims = Array.from(
      { length: 100 },
      (_, index): AllocationChange => claim(server(index + 1), INSTANCE, onA(1)),
    );
    const outcomes = await Promise.all(claims.map((one) => ledger.applyAllocations([one])));
    const kinds = outcomes.flat().map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "committed")).toHaveLength(8);
    expect(kinds.filter((kind) => kind === "no-capacity")).toHaveLength(92);
    await lawful();
  });
});
