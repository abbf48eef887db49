import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { claim, release, swap } from "../../core/ledger/allocation-change.ts";
import { aggregateUuid, consumerUuid, providerUuid, resourceClass, trait } from "../../core/ledger/ids.ts";
import type { Ledger } from "../../core/ledger/ledger-port.ts";
import { change, INSTANCE, inventory, item, move, replace, spec, tree } from "../ledger-builders.ts";

/** A ledger of its own, empty, and how to dispose of it. */
export interface LedgerSubject {
  readonly ledger: Ledger;
  dispose(): Promise<void>;
}

const server = (digit: string) => consumerUuid(`c0000000-0000-4000-8000-00000000000${digit}`);
const HOST = providerUuid("a0000000-0000-4000-8000-000000000001");
const GPU = providerUuid("a0000000-0000-4000-8000-000000000002");
const OTHER = providerUuid("b0000000-0000-4000-8000-000000000001");
const VCPU = resourceClass("VCPU");

const hostTree = (vcpus = 8) =>
  tree(
    spec(HOST, "host", {
      inventories: { VCPU: inventory(vcpus), MEMORY_MB: inventory(1024, { stepSize: 64, minUnit: 64 }) },
    }),
    spec(GPU, "gpu", { parent: HOST, inventories: { CUSTOM_GPU_MILLI: inventory(1000) }, traits: ["CUSTOM_GPU_T4"] }),
  );
const otherTree = () => tree(spec(OTHER, "other", { inventories: { VCPU: inventory(4, { maxUnit: 2 }) } }));

/** What every body of the ledger does. */
export function ledgerContract(name: string, makeSubject: () => Promise<LedgerSubject>): void {
  describe(`${name}: a ledger`, () => {
    let subject: LedgerSubject;
    let ledger: Ledger;
    beforeEach(async () => {
      subject = await makeSubject();
      ledger = subject.ledger;
      await ledger.putTrees([hostTree(), otherTree()]);
    });
    afterEach(() => subject.dispose());

    const usedOf = async (provider: string, name: string): Promise<number | undefined> =>
      (await ledger.dump()).providers.find(({ uuid }) => uuid === provider)?.inventories.get(resourceClass(name))?.used;
    const apply = async (...changes: Parameters<Ledger["applyAllocations"]>[0]) => ledger.applyAllocations(changes);

    describe("allocations", () => {
      it("claims several classes of several providers of a tree", async () => {
        const items = [item(GPU, "CUSTOM_GPU_MILLI", 500), item(HOST, "MEMORY_MB", 64), item(HOST, "VCPU", 2)];
        expect(await apply(claim(server("1"), INSTANCE, items))).toEqual([
          { kind: "committed", generations: new Map([[server("1"), 1]]) },
        ]);
        expect(await ledger.allocationsOf(server("1"))).toEqual([
          item(HOST, "MEMORY_MB", 64),
          item(HOST, "VCPU", 2),
          item(GPU, "CUSTOM_GPU_MILLI", 500),
        ]);
        expect(await usedOf(GPU, "CUSTOM_GPU_MILLI")).toBe(500);
        expect((await ledger.dump()).consumers).toMatchObject([{ uuid: server("1"), generation: 1, ...INSTANCE }]);
      });

      it("claims nothing when one of two providers lacks room, and lists every shortfall", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 7), item(GPU, "CUSTOM_GPU_MILLI", 600)]));
        const before = await ledger.dump();
        const items = [item(HOST, "VCPU", 2), item(GPU, "CUSTOM_GPU_MILLI", 500), item(HOST, "MEMORY_MB", 64)];
        expect(await apply(claim(server("2"), INSTANCE, items))).toEqual([
          {
            kind: "no-capacity",
            shortfalls: [
              { provider: HOST, resourceClass: VCPU, reason: "capacity", requested: 2, used: 7, limit: 8 },
              {
                provider: GPU,
                resourceClass: resourceClass("CUSTOM_GPU_MILLI"),
                reason: "capacity",
                requested: 500,
                used: 600,
                limit: 1000,
              },
            ],
          },
        ]);
        expect(await ledger.dump()).toEqual(before);
      });

      it("holds amounts to an inventory's units", async () => {
        expect(
          await apply(claim(server("1"), INSTANCE, [item(HOST, "MEMORY_MB", 33), item(OTHER, "VCPU", 3)])),
        ).toEqual([
          {
            kind: "no-capacity",
            shortfalls: [
              { provider: HOST, resourceClass: "MEMORY_MB", reason: "min_unit", requested: 33, used: 0, limit: 64 },
              { provider: HOST, resourceClass: "MEMORY_MB", reason: "step_size", requested: 33, used: 0, limit: 64 },
              { provider: OTHER, resourceClass: "VCPU", reason: "max_unit", requested: 3, used: 0, limit: 2 },
            ],
          },
        ]);
      });

      it("answers each change of a batch on its own, in order, a refused one's demand not counting", async () => {
        const outcomes = await apply(
          claim(server("1"), INSTANCE, [item(HOST, "VCPU", 5)]),
          claim(server("2"), INSTANCE, [item(HOST, "VCPU", 4)]),
          claim(server("3"), INSTANCE, [item(HOST, "VCPU", 3)]),
          release(server("1"), INSTANCE),
          claim(server("2"), INSTANCE, [item(HOST, "VCPU", 4)]),
        );
        expect(outcomes.map(({ kind }) => kind)).toEqual([
          "committed",
          "no-capacity",
          "committed",
          "committed",
          "committed",
        ]);
        expect(await usedOf(HOST, "VCPU")).toBe(7);
      });

      it("refuses a consumer that is not as expected", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1)]));
        expect(
          await apply(
            claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1)]),
            change(replace(server("1"), 7, [item(HOST, "VCPU", 1)])),
            change(replace(server("2"), 0, [item(HOST, "VCPU", 1)])),
          ),
        ).toEqual([
          { kind: "consumer-conflict", consumer: server("1"), expected: null, actual: 1 },
          { kind: "consumer-conflict", consumer: server("1"), expected: 7, actual: 1 },
          { kind: "consumer-conflict", consumer: server("2"), expected: 0, actual: null },
        ]);
      });

      it("refuses a provider and an inventory that it does not know", async () => {
        const nobody = providerUuid("f0000000-0000-4000-8000-000000000001");
        expect(
          await apply(
            claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1), item(nobody, "VCPU", 1)]),
            claim(server("1"), INSTANCE, [item(GPU, "VCPU", 1)]),
            claim(server("1"), INSTANCE, [item(HOST, "CUSTOM_UNHEARD_OF", 1)]),
          ),
        ).toEqual([
          { kind: "unknown-provider", provider: nobody },
          { kind: "unknown-inventory", provider: GPU, resourceClass: "VCPU" },
          { kind: "unknown-inventory", provider: HOST, resourceClass: "CUSTOM_UNHEARD_OF" },
        ]);
        expect((await ledger.dump()).consumers).toEqual([]);
      });

      it("releases what a consumer holds, and again without harm", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 3)]));
        const committed = { kind: "committed", generations: new Map() };
        expect(await apply(release(server("1"), INSTANCE), release(server("1"), INSTANCE))).toEqual([
          committed,
          committed,
        ]);
        expect(await ledger.allocationsOf(server("1"))).toEqual([]);
        expect(await usedOf(HOST, "VCPU")).toBe(0);
        expect((await ledger.dump()).consumers).toEqual([]);
      });

      it("swaps one host for another in one write, room being needed on the new one alone", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 8)]));
        expect(await apply(swap(server("1"), INSTANCE, [item(OTHER, "VCPU", 2)]))).toEqual([
          { kind: "committed", generations: new Map([[server("1"), 2]]) },
        ]);
        expect([await usedOf(HOST, "VCPU"), await usedOf(OTHER, "VCPU")]).toEqual([0, 2]);
      });

      it("keeps the old host's allocation when a swap is refused", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 8)]));
        const before = await ledger.dump();
        expect(await apply(swap(server("1"), INSTANCE, [item(OTHER, "VCPU", 3)]))).toMatchObject([
          { kind: "no-capacity" },
        ]);
        expect(await ledger.dump()).toEqual(before);
      });

      it("grows a consumer in place, counting what it gives back", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 6)]));
        expect(await apply(change(replace(server("1"), 1, [item(HOST, "VCPU", 8)])))).toMatchObject([
          { kind: "committed" },
        ]);
        expect(await apply(change(replace(server("1"), 2, [item(HOST, "VCPU", 9)])))).toEqual([
          {
            kind: "no-capacity",
            shortfalls: [
              { provider: HOST, resourceClass: VCPU, reason: "max_unit", requested: 9, used: 0, limit: 8 },
              { provider: HOST, resourceClass: VCPU, reason: "capacity", requested: 9, used: 0, limit: 8 },
            ],
          },
        ]);
      });

      it("moves all that one consumer holds to another, untouched", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 8)]));
        expect(await apply({ steps: [move(server("1"), server("2"))] })).toEqual([
          { kind: "committed", generations: new Map([[server("2"), 1]]) },
        ]);
        expect((await ledger.dump()).consumers).toEqual([
          { ...INSTANCE, type: "MIGRATION", uuid: server("2"), generation: 1, items: [item(HOST, "VCPU", 8)] },
        ]);
        expect(await usedOf(HOST, "VCPU")).toBe(8);
      });

      it("moves to a migration and claims the destination in one change, and back", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 2)]));
        const [away] = await apply({
          steps: [move(server("1"), server("2")), replace(server("1"), null, [item(OTHER, "VCPU", 2)])],
        });
        expect(away).toEqual({
          kind: "committed",
          generations: new Map([
            [server("2"), 1],
            [server("1"), 1],
          ]),
        });
        const [back] = await apply({
          steps: [replace(server("1"), 1, []), move(server("2"), server("1"), "INSTANCE")],
        });
        expect(back).toMatchObject({ kind: "committed" });
        expect(await ledger.allocationsOf(server("1"))).toEqual([item(HOST, "VCPU", 2)]);
        expect(await usedOf(OTHER, "VCPU")).toBe(0);
      });

      it("refuses to move from nobody and to somebody", async () => {
        await apply(
          claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1)]),
          claim(server("2"), INSTANCE, [item(HOST, "VCPU", 1)]),
        );
        expect(
          await apply({ steps: [move(server("3"), server("4"))] }, { steps: [move(server("1"), server("2"))] }),
        ).toEqual([
          { kind: "consumer-conflict", consumer: server("3"), expected: "any", actual: null },
          { kind: "consumer-conflict", consumer: server("2"), expected: null, actual: 1 },
        ]);
      });

      it("takes back the steps before the one that failed", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 2)]));
        const before = await ledger.dump();
        const refused = { steps: [move(server("1"), server("2")), replace(server("3"), 5, [item(HOST, "VCPU", 1)])] };
        const [first, second] = await apply(refused, claim(server("2"), INSTANCE, [item(OTHER, "VCPU", 1)]));
        expect(first).toMatchObject({ kind: "consumer-conflict", consumer: server("3") });
        expect(second).toMatchObject({ kind: "committed" });
        await apply(release(server("2"), INSTANCE));
        expect(await ledger.dump()).toEqual(before);
      });

      it("lets one step take what another gives back", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 8)]));
        const exchange = {
          steps: [replace(server("2"), null, [item(HOST, "VCPU", 8)]), replace(server("1"), "any" as const, [])],
        };
        expect(await apply(exchange)).toMatchObject([{ kind: "committed" }]);
      });

      it("raises the generations of the providers touched only when asked to", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1)]));
        await apply({ ...swap(server("1"), INSTANCE, [item(OTHER, "VCPU", 1)]), bumpProviders: true });
        const generations = (await ledger.dump()).providers.map(({ uuid, generation }) => [uuid, generation]);
        expect(generations).toEqual([
          [HOST, 1],
          [GPU, 0],
          [OTHER, 1],
        ]);
      });

      it("takes names with quotes, braces and backslashes as they are", async () => {
        const owner = { projectId: 'p"\\{},(x', userId: "null", type: " a,b " };
        await apply(claim(server("1"), owner, [item(HOST, "VCPU", 1)]));
        expect((await ledger.dump()).consumers).toMatchObject([owner]);
      });

      it("answers a change without steps, beside one with two", async () => {
        const two = change(
          replace(server("1"), null, [item(HOST, "VCPU", 1)]),
          replace(server("2"), null, [item(HOST, "VCPU", 1)]),
        );
        const generations = new Map([
          [server("1"), 1],
          [server("2"), 1],
        ]);
        expect(await apply(change(), two)).toEqual([
          { kind: "committed", generations: new Map() },
          { kind: "committed", generations },
        ]);
      });

      it("answers an empty batch with nothing", async () => {
        expect(await apply()).toEqual([]);
      });
    });

    describe("provider trees", () => {
      it("stores a tree with its inventories, traits and parents", async () => {
        const { providers } = await ledger.dump();
        expect(providers.map(({ uuid, name, parent, root }) => ({ uuid, name, parent, root }))).toEqual([
          { uuid: HOST, name: "host", parent: null, root: HOST },
          { uuid: GPU, name: "gpu", parent: HOST, root: HOST },
          { uuid: OTHER, name: "other", parent: null, root: OTHER },
        ]);
        expect(providers[1]?.traits).toEqual(new Set(["CUSTOM_GPU_T4"]));
        expect(providers[1]?.inventories.get(resourceClass("CUSTOM_GPU_MILLI"))).toEqual({
          ...inventory(1000),
          used: 0,
        });
      });

      it("writes nothing when the report equals what is there", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1)]));
        const before = await ledger.dump();
        expect(await ledger.putTrees([hostTree()])).toEqual([
          {
            kind: "unchanged",
            generations: new Map([
              [HOST, 0],
              [GPU, 0],
            ]),
          },
        ]);
        expect(await ledger.dump()).toEqual(before);
      });

      it("raises the generation of the providers that differ, by one, and of no other", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 6)]));
        expect(await ledger.putTrees([hostTree(4)])).toEqual([
          {
            kind: "replaced",
            generations: new Map([
              [HOST, 1],
              [GPU, 0],
            ]),
          },
        ]);
        expect(await usedOf(HOST, "VCPU")).toBe(6);
      });

      it("takes nothing more of an inventory that shrank below its use, and lets it be given back", async () => {
        await apply(
          claim(server("1"), INSTANCE, [item(HOST, "VCPU", 3)]),
          claim(server("2"), INSTANCE, [item(HOST, "VCPU", 3)]),
        );
        await ledger.putTrees([hostTree(4)]);
        expect(await apply(claim(server("3"), INSTANCE, [item(HOST, "VCPU", 1)]))).toMatchObject([
          { kind: "no-capacity" },
        ]);
        expect(await apply(change(replace(server("1"), 1, [item(HOST, "VCPU", 2)])))).toMatchObject([
          { kind: "committed" },
        ]);
        expect(await apply(change(replace(server("1"), 2, [item(HOST, "VCPU", 3)])))).toMatchObject([
          { kind: "no-capacity" },
        ]);
      });

      it("refuses a generation that is not as expected", async () => {
        const outcomes = await ledger.putTrees([
          tree(spec(HOST, "host", { expected: null })),
          tree(spec(OTHER, "other", { expected: 3 })),
          tree(spec(providerUuid("d0000000-0000-4000-8000-000000000001"), "new", { expected: 0 })),
        ]);
        expect(outcomes).toMatchObject([
          { kind: "generation-conflict", provider: HOST, expected: null, actual: 0 },
          { kind: "generation-conflict", provider: OTHER, expected: 3, actual: 0 },
          { kind: "generation-conflict", expected: 0, actual: null },
        ]);
      });

      it("refuses to remove what is in use: first of the listed providers, then of those left out", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1), item(GPU, "CUSTOM_GPU_MILLI", 1)]));
        const before = await ledger.dump();
        const memory = { inventories: { MEMORY_MB: inventory(1024) } };
        expect(await ledger.putTrees([tree(spec(HOST, "host", memory))])).toEqual([
          { kind: "in-use", provider: HOST, resourceClass: VCPU },
        ]);
        expect(await ledger.putTrees([tree(spec(HOST, "host", { inventories: { VCPU: inventory(8) } }))])).toEqual([
          { kind: "in-use", provider: GPU, resourceClass: null },
        ]);
        expect(await ledger.dump()).toEqual(before);
      });

      it("removes what the list leaves out, children first", async () => {
        expect(await ledger.putTrees([tree(spec(HOST, "host"))])).toMatchObject([{ kind: "replaced" }]);
        const { providers } = await ledger.dump();
        expect(providers.map(({ uuid }) => uuid)).toEqual([HOST, OTHER]);
        expect(await apply(claim(server("1"), INSTANCE, [item(GPU, "CUSTOM_GPU_MILLI", 1)]))).toEqual([
          { kind: "unknown-provider", provider: GPU },
        ]);
      });

      it("hangs a provider under a new parent in place of the one that goes, which gives it its name", async () => {
        const numa = providerUuid("a0000000-0000-4000-8000-000000000003");
        const deep = tree(spec(HOST, "host"), spec(numa, "numa", { parent: HOST }), spec(GPU, "gpu", { parent: numa }));
        const bridge = providerUuid("a0000000-0000-4000-8000-000000000004");
        await ledger.putTrees([deep]);
        const [outcome] = await ledger.putTrees([
          tree(spec(HOST, "gpu"), spec(bridge, "host", { parent: HOST }), spec(GPU, "numa", { parent: bridge })),
        ]);
        expect(outcome).toMatchObject({
          kind: "replaced",
          generations: new Map([
            [HOST, 2],
            [bridge, 0],
            [GPU, 2],
          ]),
        });
        const names = (await ledger.dump()).providers.map(({ uuid, name, parent }) => [uuid, name, parent]);
        expect(names).toEqual([
          [HOST, "gpu", null],
          [GPU, "numa", bridge],
          [bridge, "host", HOST],
          [OTHER, "other", null],
        ]);
      });

      it("refuses a name that another tree has", async () => {
        expect(await ledger.putTrees([tree(spec(OTHER, "gpu"))])).toEqual([
          { kind: "name-taken", provider: OTHER, name: "gpu" },
        ]);
      });

      it("refuses lists that are no tree", async () => {
        const child = spec(GPU, "gpu", { parent: OTHER });
        const outcomes = await ledger.putTrees([
          { root: HOST, providers: [] },
          { root: HOST, providers: [spec(OTHER, "other")] },
          tree(spec(HOST, "host"), child),
          tree(spec(HOST, "host"), spec(HOST, "again", { parent: HOST })),
          tree(spec(HOST, "host"), spec(GPU, "host", { parent: HOST })),
          tree(spec(OTHER, "other"), child),
          tree(spec(GPU, "gpu")),
        ]);
        expect(outcomes.map(({ kind }) => kind)).toEqual(new Array(7).fill("malformed"));
      });

      it("leaves aggregates alone unless the report has them", async () => {
        const aggregate = aggregateUuid("e0000000-0000-4000-8000-000000000001");
        const inventories = { VCPU: inventory(4, { maxUnit: 2 }) };
        await ledger.putTrees([tree(spec(OTHER, "other", { inventories, aggregates: [aggregate] }))]);
        expect(await ledger.putTrees([otherTree()])).toMatchObject([{ kind: "unchanged" }]);
        expect((await ledger.dump()).providers[2]?.aggregates).toEqual(new Set([aggregate]));
        expect(await ledger.putTrees([tree(spec(OTHER, "other", { inventories, aggregates: [] }))])).toMatchObject([
          { kind: "replaced" },
        ]);
        expect((await ledger.dump()).providers[2]?.aggregates).toEqual(new Set());
      });

      it("changes traits", async () => {
        await ledger.putTrees([tree(spec(OTHER, "other", { traits: ["CUSTOM_A", "CUSTOM_B"] }))]);
        await ledger.putTrees([tree(spec(OTHER, "other", { traits: ["CUSTOM_B", "CUSTOM_C"] }))]);
        expect((await ledger.dump()).providers[2]).toMatchObject({
          generation: 2,
          traits: new Set([trait("CUSTOM_B"), trait("CUSTOM_C")]),
        });
      });

      it("puts trees of one batch in their order when they take names or providers from each other", async () => {
        const outcomes = await ledger.putTrees([
          tree(spec(HOST, "renamed")),
          tree(spec(OTHER, "gpu"), spec(GPU, "host", { parent: OTHER })),
          tree(spec(HOST, "gpu")),
          tree(spec(HOST, "renamed")),
        ]);
        expect(outcomes.map(({ kind }) => kind)).toEqual(["replaced", "replaced", "name-taken", "unchanged"]);
      });

      it("decides the trees of a batch each on its own", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1)]));
        const outcomes = await ledger.putTrees([
          tree(spec(HOST, "host")),
          otherTree(),
          tree(spec(providerUuid("d0000000-0000-4000-8000-000000000001"), "new", { expected: null })),
        ]);
        expect(outcomes.map(({ kind }) => kind)).toEqual(["in-use", "unchanged", "replaced"]);
      });
    });
  });
}
