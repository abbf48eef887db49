import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AllocationChange, claim, release } from "../../core/ledger/allocation-change.ts";
import { type ProviderUuid, providerUuid, resourceClass } from "../../core/ledger/ids.ts";
import type { Inventory, Provider } from "../../core/ledger/model.ts";
import type { ProviderSpec, ProviderTree } from "../../core/ledger/provider-tree.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import { INSTANCE, inventory, item, spec, tree } from "../rigs/ledger-builders.ts";
import { GPU, HOST, type LedgerSubject, OTHER, server, usedOf } from "./ledger-scene.ts";

const LICENSES = providerUuid("d0000000-0000-4000-8000-000000000009");
const NUMA = [0, 1].map((index) => providerUuid(`a0000000-0000-4000-8000-00000000010${index}`));
const VANISHED = "CUSTOM_BERTH_VANISHED";

type Classes = Readonly<Record<string, Inventory>>;
const root = (inventories: Classes = { VCPU: inventory(8), MEMORY_MB: inventory(1024) }, traits: string[] = []) =>
  spec(HOST, "host", { inventories, traits });
const gpu = (inventories: Classes = { VGPU: inventory(4) }, traits = ["CUSTOM_GPU_T4"]) =>
  spec(GPU, "gpu", { parent: HOST, inventories, traits });
const numa = (index: number, vcpus: number, memory = 512, rest: Classes = {}) =>
  spec(NUMA[index]!, `numa${index}`, {
    parent: HOST,
    inventories: { VCPU: inventory(vcpus), MEMORY_MB: inventory(memory), ...rest },
  });

/** The behaviour of every implementation of the ledger with agents' reports. */
export function ledgerReportsContract(name: string, makeSubject: () => Promise<LedgerSubject>): void {
  describe(`${name}: reports of agents`, () => {
    let subject: LedgerSubject;
    let ledger: Ledger;
    beforeEach(async () => {
      subject = await makeSubject();
      ledger = subject.ledger;
      await report(root(), gpu());
    });
    afterEach(() => subject.dispose());

    const report = async (first: ProviderSpec, ...others: ProviderSpec[]) =>
      (await ledger.reportTrees([tree(first, ...others)]))[0]!;
    const apply = (...changes: readonly AllocationChange[]) => ledger.applyAllocations(changes);
    const find = async (uuid: ProviderUuid): Promise<Provider | undefined> =>
      (await ledger.dump()).providers.find((provider) => provider.uuid === uuid);
    const inventoriesOf = async (uuid: ProviderUuid) =>
      Object.fromEntries(
        Array.from((await find(uuid))?.inventories ?? [], ([key, { total, reserved, used }]) => [
          key,
          [total, reserved, used],
        ]),
      );
    /** A change of the stored tree by another client of the Placement API. */
    const edit = async (change: (provider: Provider) => Partial<ProviderSpec>, ...more: ProviderSpec[]) => {
      const { providers } = await ledger.dump();
      const specs = providers
        .filter((provider) => provider.root === HOST)
        .sort((a, b) => Number(a.parent !== null) - Number(b.parent !== null))
        .map((provider): ProviderSpec => {
          const inventories = new Map(
            Array.from(provider.inventories, ([key, { used: _used, ...values }]) => [key, values]),
          );
          const { uuid, name: providerName, parent, traits } = provider;
          return { uuid, name: providerName, parent, traits, expected: "any", inventories, ...change(provider) };
        });
      const edited: ProviderTree = { root: HOST, providers: [...specs, ...more] };
      expect(await ledger.putTrees([edited])).toMatchObject([{ kind: "replaced" }]);
    };
    const withTrait =
      (uuid: ProviderUuid, ...traits: string[]) =>
      (provider: Provider) =>
        provider.uuid === uuid ? { traits: new Set([...provider.traits, ...(traits as never[])]) } : {};

    it("store a tree, and write nothing when they say the same again", async () => {
      const before = await ledger.dump();
      expect(await report(root(), gpu())).toEqual({ kind: "unchanged", kept: [] });
      expect(await ledger.dump()).toEqual(before);
      expect(await inventoriesOf(GPU)).toEqual({ VGPU: [4, 0, 0] });
    });

    it("leave alone the traits that others have set, and take away their own", async () => {
      await edit(withTrait(HOST, "CUSTOM_GOLD"));
      await edit(withTrait(GPU, "CUSTOM_FAST"));
      expect(await report(root(undefined, ["CUSTOM_A"]), gpu())).toMatchObject({ kind: "replaced" });
      expect((await find(HOST))?.traits).toEqual(new Set(["CUSTOM_A", "CUSTOM_GOLD"]));
      await report(root(), gpu(undefined, []));
      expect((await find(HOST))?.traits).toEqual(new Set(["CUSTOM_GOLD"]));
      expect((await find(GPU))?.traits).toEqual(new Set(["CUSTOM_FAST"]));
    });

    it("own the traits of CPUs and drivers, whatever has set them", async () => {
      await edit(withTrait(HOST, "HW_CPU_X86_AVX2", "COMPUTE_NODE", "MISC_SHARES_VIA_AGGREGATE"));
      await report(root(undefined, ["HW_CPU_X86_SSE2"]), gpu());
      expect((await find(HOST))?.traits).toEqual(new Set(["HW_CPU_X86_SSE2", "MISC_SHARES_VIA_AGGREGATE"]));
    });

    it("leave alone the inventories and providers of others, in use or not", async () => {
      const licenses = spec(LICENSES, "licenses", { parent: HOST, inventories: { CUSTOM_LICENSE: inventory(5) } });
      await edit(
        ({ uuid, inventories }) =>
          uuid === HOST ? { inventories: new Map([...inventories, [resourceClass("CUSTOM_SLOT"), inventory(3)]]) } : {},
        licenses,
      );
      await apply(claim(server("1"), INSTANCE, [item(LICENSES, "CUSTOM_LICENSE", 2)]));
      expect(await report(root({ VCPU: inventory(4) }), gpu())).toEqual({ kind: "replaced", kept: [] });
      expect(await inventoriesOf(HOST)).toEqual({ CUSTOM_SLOT: [3, 0, 0], VCPU: [4, 0, 0] });
      expect(await inventoriesOf(LICENSES)).toEqual({ CUSTOM_LICENSE: [5, 0, 2] });
      expect(await report(root({ VCPU: inventory(4) }), gpu())).toEqual({ kind: "unchanged", kept: [] });
    });

    it("leave alone a ratio that an operator has changed, until the agent reports another one than before", async () => {
      const vcpus = (allocationRatio: number, total = 8) => ({ VCPU: inventory(total, { allocationRatio }) });
      const ratio = async () => (await find(HOST))?.inventories.get(resourceClass("VCPU"));
      await report(root(vcpus(2)), gpu());
      await edit(({ uuid }) =>
        uuid === HOST ? { inventories: new Map([[resourceClass("VCPU"), vcpus(16).VCPU]]) } : {},
      );
      await report(root(vcpus(2, 4)), gpu());
      expect(await ratio()).toMatchObject({ total: 4, allocationRatio: 16 });
      await report(root(vcpus(3, 4)), gpu());
      expect(await ratio()).toMatchObject({ total: 4, allocationRatio: 3 });
    });

    it("give an inventory its initial ratio when it is first stored, and never another one later", async () => {
      const vcpus = (allocationRatio: number, total = 8) => ({ VCPU: inventory(total, { allocationRatio }) });
      const initially = (ratio: number, total?: number): ProviderSpec => ({
        ...root(vcpus(ratio, total)),
        initialRatios: new Set([resourceClass("VCPU")]),
      });
      const ratio = async () => (await find(HOST))?.inventories.get(resourceClass("VCPU"));
      await report(root({ MEMORY_MB: inventory(1024) }), gpu());
      await report(initially(4), gpu());
      expect(await ratio()).toMatchObject({ total: 8, allocationRatio: 4 });
      await report(initially(8, 6), gpu());
      expect(await ratio()).toMatchObject({ total: 6, allocationRatio: 4 });
      await edit(({ uuid }) =>
        uuid === HOST ? { inventories: new Map([[resourceClass("VCPU"), vcpus(16, 6).VCPU]]) } : {},
      );
      expect(await report(initially(2, 6), gpu())).toMatchObject({ kind: "unchanged" });
      await report(initially(2, 5), gpu());
      expect(await ratio()).toMatchObject({ total: 5, allocationRatio: 16 });
      await report(root(vcpus(4, 5)), gpu());
      expect(await ratio()).toMatchObject({ allocationRatio: 16 });
      await report(root(vcpus(3, 5)), gpu());
      expect(await ratio()).toMatchObject({ allocationRatio: 3 });
    });

    it("may shrink an inventory below its use: it is over capacity and takes nothing more until enough is given back", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 6)]));
      const kept = [{ provider: HOST, name: "host", resourceClass: "VCPU", used: 6, capacity: 4, byReport: true }];
      expect(await report(root({ VCPU: inventory(4) }), gpu())).toEqual({ kind: "replaced", kept });
      expect(await report(root({ VCPU: inventory(4) }), gpu())).toEqual({ kind: "unchanged", kept });
      expect(await inventoriesOf(HOST)).toEqual({ VCPU: [4, 0, 6] });
      const one = claim(server("2"), INSTANCE, [item(HOST, "VCPU", 1)]);
      expect(await apply(one)).toMatchObject([{ kind: "no-capacity" }]);
      await apply(release(server("1"), INSTANCE));
      expect(await apply(one)).toMatchObject([{ kind: "committed" }]);
    });

    it("keep a class that is in use and gone from the host, closed, until nothing uses it", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "MEMORY_MB", 64)]));
      const smaller = () => report(root({ VCPU: inventory(8) }), gpu());
      const kept = [
        { provider: HOST, name: "host", resourceClass: "MEMORY_MB", used: 64, capacity: null, byReport: true },
      ];
      expect(await smaller()).toEqual({ kind: "replaced", kept });
      expect(await inventoriesOf(HOST)).toEqual({ MEMORY_MB: [1024, 1024, 64], VCPU: [8, 0, 0] });
      expect(await smaller()).toEqual({ kind: "unchanged", kept });
      expect(await apply(claim(server("2"), INSTANCE, [item(HOST, "MEMORY_MB", 1)]))).toMatchObject([
        { kind: "no-capacity" },
      ]);
      await apply(release(server("1"), INSTANCE));
      expect(await smaller()).toEqual({ kind: "replaced", kept: [] });
      expect(await inventoriesOf(HOST)).toEqual({ VCPU: [8, 0, 0] });
    });

    it("keep a provider that has vanished while it is in use, marked and closed, until nothing uses it", async () => {
      await apply(claim(server("1"), INSTANCE, [item(GPU, "VGPU", 1)]));
      const kept = [{ provider: GPU, name: "gpu", resourceClass: "VGPU", used: 1, capacity: null, byReport: true }];
      expect(await report(root())).toEqual({ kind: "replaced", kept });
      expect(await inventoriesOf(GPU)).toEqual({ VGPU: [4, 4, 1] });
      expect((await find(GPU))?.traits).toEqual(new Set(["CUSTOM_GPU_T4", VANISHED]));
      expect(await report(root())).toEqual({ kind: "unchanged", kept });
      await apply(release(server("1"), INSTANCE));
      expect(await report(root())).toEqual({ kind: "replaced", kept: [] });
      expect(await find(GPU)).toBeUndefined();
    });

    it("open a vanished provider again when it comes back", async () => {
      await apply(claim(server("1"), INSTANCE, [item(GPU, "VGPU", 1)]));
      await report(root());
      expect(await report(root(), gpu())).toEqual({ kind: "replaced", kept: [] });
      expect(await inventoriesOf(GPU)).toEqual({ VGPU: [4, 0, 1] });
      expect((await find(GPU))?.traits).toEqual(new Set(["CUSTOM_GPU_T4"]));
    });

    it("give the name of a vanished provider in use to its successor", async () => {
      await apply(claim(server("1"), INSTANCE, [item(GPU, "VGPU", 1)]));
      const successor = spec(NUMA[0]!, "gpu", { parent: HOST, inventories: { PGPU: inventory(1) } });
      expect(await report(root(), successor)).toMatchObject({ kind: "replaced" });
      expect((await find(NUMA[0]!))?.name).toBe("gpu");
      expect((await find(GPU))?.name).toContain("gpu (vanished");
      expect(await usedOf(ledger, GPU, "VGPU")).toBe(1);
    });

    it("keep a vanished provider that has a provider of somebody else below it", async () => {
      const below = spec(LICENSES, "licenses", { parent: GPU, inventories: { CUSTOM_LICENSE: inventory(5) } });
      await edit(() => ({}), below);
      const kept = [{ provider: GPU, name: "gpu", resourceClass: null, used: 0, capacity: null, byReport: false }];
      expect(await report(root())).toEqual({ kind: "replaced", kept });
      expect((await find(LICENSES))?.parent).toBe(GPU);
      expect(await inventoriesOf(GPU)).toEqual({});
      expect(await report(root())).toEqual({ kind: "unchanged", kept });
    });

    it("are refused a name that somebody else's provider has, in the tree or outside of it", async () => {
      await edit(() => ({}), spec(LICENSES, "licenses", { parent: HOST }));
      await ledger.putTrees([tree(spec(OTHER, "other"))]);
      const before = await ledger.dump();
      for (const taken of ["licenses", "other"])
        expect(await report(root(), spec(NUMA[0]!, taken, { parent: HOST }))).toEqual({
          ...{ kind: "name-taken", provider: NUMA[0], name: taken },
        });
      expect(await ledger.dump()).toEqual(before);
    });

    it("leave resources from before the first report to their owners", async () => {
      const inventories = { VCPU: inventory(4, { allocationRatio: 16 }), CUSTOM_SLOT: inventory(2) };
      await ledger.putTrees([tree(spec(OTHER, "other", { inventories, traits: ["CUSTOM_GOLD"] }))]);
      const own = tree(spec(OTHER, "other", { inventories: { VCPU: inventory(8) }, traits: ["CUSTOM_A"] }));
      await ledger.reportTrees([own]);
      const stored = await find(OTHER);
      expect(stored?.traits).toEqual(new Set(["CUSTOM_A", "CUSTOM_GOLD"]));
      expect(stored?.inventories.get(resourceClass("VCPU"))).toMatchObject({ total: 8, allocationRatio: 16 });
      expect(stored?.inventories.has(resourceClass("CUSTOM_SLOT"))).toBe(true);
    });

    it("are decided each on its own in a batch", async () => {
      const outcomes = await ledger.reportTrees([
        tree(root({ VCPU: inventory(2) })),
        tree(spec(OTHER, "host")),
        { root: LICENSES, providers: [] },
        tree(spec(OTHER, "other")),
      ]);
      expect(outcomes.map(({ kind }) => kind)).toEqual(["replaced", "name-taken", "malformed", "replaced"]);
    });

    describe("of another shape", () => {
      const flat = () => report(root());
      const byNode = (vcpus = 4) => report(root({}), numa(0, vcpus), numa(1, vcpus));
      const boot = (digit: string, vcpus: number, memory = 64) =>
        claim(server(digit), INSTANCE, [item(HOST, "VCPU", vcpus), item(HOST, "MEMORY_MB", memory)]);

      beforeEach(async () => {
        await flat();
      });

      it("move the allocations from the root to NUMA nodes, each server's to one node", async () => {
        await apply(boot("1", 3), boot("2", 3), boot("3", 1));
        expect(await byNode()).toEqual({ kind: "replaced", kept: [] });
        expect(await inventoriesOf(HOST)).toEqual({});
        const used = await Promise.all(NUMA.map((uuid) => usedOf(ledger, uuid, "VCPU")));
        expect(used.toSorted()).toEqual([3, 4]);
        for (const digit of ["1", "2", "3"]) {
          const items = await ledger.allocationsOf(server(digit));
          expect(items.map((one) => String(one.resourceClass)).sort()).toEqual(["MEMORY_MB", "VCPU"]);
          expect(new Set(items.map(({ provider }) => provider)).size).toBe(1);
        }
        expect(await byNode()).toEqual({ kind: "unchanged", kept: [] });
      });

      it("change nothing when a server fits into no node, and say which", async () => {
        await apply(boot("1", 5));
        const before = await ledger.dump();
        const refused = { kind: "reshape-refused", why: expect.stringContaining(`5 VCPU of consumer ${server("1")}`) };
        expect(await byNode()).toEqual(refused);
        expect(await ledger.dump()).toEqual(before);
        expect(await byNode()).toEqual(refused);
        await apply(release(server("1"), INSTANCE));
        expect(await byNode()).toEqual({ kind: "replaced", kept: [] });
      });

      it("change nothing when the servers together do not fit", async () => {
        await apply(boot("1", 3), boot("2", 3), boot("3", 2));
        const before = await ledger.dump();
        expect(await byNode()).toMatchObject({ kind: "reshape-refused" });
        expect(await ledger.dump()).toEqual(before);
      });

      it("move the allocations back to the root, summed", async () => {
        await byNode();
        await apply(
          claim(server("1"), INSTANCE, [item(NUMA[0]!, "VCPU", 2), item(NUMA[1]!, "VCPU", 1)]),
          claim(server("2"), INSTANCE, [item(NUMA[1]!, "MEMORY_MB", 32)]),
        );
        expect(await flat()).toEqual({ kind: "replaced", kept: [] });
        expect(await ledger.allocationsOf(server("1"))).toEqual([item(HOST, "VCPU", 3)]);
        expect(await inventoriesOf(HOST)).toEqual({ MEMORY_MB: [1024, 0, 32], VCPU: [8, 0, 3] });
        expect(await find(NUMA[0]!)).toBeUndefined();
      });

      it("move VGPU from the root to the cards, and leave the servers' other allocations", async () => {
        await report(root({ VCPU: inventory(8), VGPU: inventory(4) }));
        await apply(
          claim(server("1"), INSTANCE, [item(HOST, "VCPU", 2), item(HOST, "VGPU", 1)]),
          claim(server("2"), INSTANCE, [item(HOST, "VGPU", 2)]),
        );
        const cards = NUMA.map((uuid, index) =>
          spec(uuid, `card${index}`, { parent: HOST, inventories: { VGPU: inventory(2) } }),
        );
        expect(await report(root({ VCPU: inventory(8) }), ...cards)).toEqual({ kind: "replaced", kept: [] });
        expect(await inventoriesOf(HOST)).toEqual({ VCPU: [8, 0, 2] });
        const used = await Promise.all(NUMA.map((uuid) => usedOf(ledger, uuid, "VGPU")));
        expect(used.toSorted()).toEqual([1, 2]);
      });

      it("raise the generation of a consumer whose allocations move, and keep its owner", async () => {
        await apply(boot("1", 3), boot("2", 1));
        const before = (await ledger.dump()).consumers;
        await byNode();
        const after = (await ledger.dump()).consumers;
        expect(after.map(({ items: _, ...rest }) => rest)).toEqual(
          before.map(({ items: _, ...rest }) => ({ ...rest, generation: rest.generation + 1 })),
        );
      });

      it("do not move allocations from a card that has vanished to another one", async () => {
        await report(root(), gpu());
        await apply(claim(server("1"), INSTANCE, [item(GPU, "VGPU", 1)]));
        const other = spec(NUMA[0]!, "gpu2", { parent: HOST, inventories: { VGPU: inventory(4) } });
        expect(await report(root(), other)).toMatchObject({ kind: "replaced", kept: [{ provider: GPU }] });
        expect(await usedOf(ledger, GPU, "VGPU")).toBe(1);
      });
    });
  });
}
