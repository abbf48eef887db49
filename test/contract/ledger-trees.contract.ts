import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AllocationChange, claim } from "../../core/ledger/allocation-change.ts";
import { aggregateUuid, providerUuid, resourceClass, trait } from "../../core/ledger/ids.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import { change, INSTANCE, inventory, item, replace, spec, tree } from "../rigs/ledger-builders.ts";
import { GPU, HOST, hostTree, type LedgerSubject, OTHER, otherTree, STRANGER, server, usedOf } from "./ledger-scene.ts";

/** The guarantees of every implementation of the ledger about provider trees. */
export function ledgerTreesContract(name: string, makeSubject: () => Promise<LedgerSubject>): void {
  describe(`${name}: a ledger's provider trees`, () => {
    let subject: LedgerSubject;
    let ledger: Ledger;
    beforeEach(async () => {
      subject = await makeSubject();
      ledger = subject.ledger;
      await ledger.putTrees([hostTree(), otherTree()]);
    });
    afterEach(() => subject.dispose());
    const apply = (...changes: readonly AllocationChange[]) => ledger.applyAllocations(changes);

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

    it("writes nothing when the report equals the stored tree", async () => {
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

    it("raises the generation of the providers that differ by one, and of no others", async () => {
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
      expect(await usedOf(ledger, HOST, "VCPU")).toBe(6);
    });

    it("accepts no more claims on an inventory that shrank below its use, and lets allocations be released", async () => {
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

    it("refuses an unexpected generation", async () => {
      const outcomes = await ledger.putTrees([
        tree(spec(HOST, "host", { expected: null })),
        tree(spec(OTHER, "other", { expected: 3 })),
        tree(spec(STRANGER, "new", { expected: 0 })),
      ]);
      expect(outcomes).toMatchObject([
        { kind: "generation-conflict", provider: HOST, expected: null, actual: 0 },
        { kind: "generation-conflict", provider: OTHER, expected: 3, actual: 0 },
        { kind: "generation-conflict", expected: 0, actual: null },
      ]);
    });

    it("refuses to remove inventories in use: first those of listed providers, then those of providers left out", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1), item(GPU, "CUSTOM_GPU_MILLI", 1)]));
      const before = await ledger.dump();
      const memory = { inventories: { MEMORY_MB: inventory(1024) } };
      expect(await ledger.putTrees([tree(spec(HOST, "host", memory))])).toEqual([
        { kind: "in-use", provider: HOST, resourceClass: "VCPU" },
      ]);
      expect(await ledger.putTrees([tree(spec(HOST, "host", { inventories: { VCPU: inventory(8) } }))])).toEqual([
        { kind: "in-use", provider: GPU, resourceClass: null },
      ]);
      expect(await ledger.dump()).toEqual(before);
    });

    it("removes providers that the list leaves out, children first", async () => {
      expect(await ledger.putTrees([tree(spec(HOST, "host"))])).toMatchObject([{ kind: "replaced" }]);
      const { providers } = await ledger.dump();
      expect(providers.map(({ uuid }) => uuid)).toEqual([HOST, OTHER]);
      expect(await apply(claim(server("1"), INSTANCE, [item(GPU, "CUSTOM_GPU_MILLI", 1)]))).toEqual([
        { kind: "unknown-provider", provider: GPU },
      ]);
    });

    it("puts a provider under a new parent that replaces the removed one and takes its name", async () => {
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

    it("refuses lists that do not form a tree", async () => {
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

    it("leaves aggregates unchanged unless the report contains them", async () => {
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

    it("decides each tree of a batch separately", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1)]));
      const outcomes = await ledger.putTrees([
        tree(spec(HOST, "host")),
        otherTree(),
        tree(spec(STRANGER, "new", { expected: null })),
      ]);
      expect(outcomes.map(({ kind }) => kind)).toEqual(["in-use", "unchanged", "replaced"]);
    });
  });
}
