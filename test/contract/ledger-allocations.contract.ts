import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AllocationChange,
  type AllocationStep,
  claim,
  release,
  swap,
} from "../../core/ledger/allocation-change.ts";
import type { Ledger } from "../../core/stores/cell/ledger-port.ts";
import { change, INSTANCE, item, move, replace } from "../rigs/ledger-builders.ts";
import { GPU, HOST, hostTree, type LedgerSubject, OTHER, otherTree, STRANGER, server, usedOf } from "./ledger-scene.ts";

/** The guarantees of every implementation of the ledger about allocations. */
export function ledgerAllocationsContract(name: string, makeSubject: () => Promise<LedgerSubject>): void {
  describe(`${name}: a ledger's allocations`, () => {
    let subject: LedgerSubject;
    let ledger: Ledger;
    beforeEach(async () => {
      subject = await makeSubject();
      ledger = subject.ledger;
      await ledger.putTrees([hostTree(), otherTree()]);
    });
    afterEach(() => subject.dispose());
    const apply = (...changes: readonly AllocationChange[]) => ledger.applyAllocations(changes);

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
      expect(await usedOf(ledger, GPU, "CUSTOM_GPU_MILLI")).toBe(500);
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
            { provider: HOST, resourceClass: "VCPU", reason: "capacity", requested: 2, used: 7, limit: 8 },
            {
              provider: GPU,
              resourceClass: "CUSTOM_GPU_MILLI",
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

    it("enforces an inventory's units", async () => {
      expect(await apply(claim(server("1"), INSTANCE, [item(HOST, "MEMORY_MB", 33), item(OTHER, "VCPU", 3)]))).toEqual([
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

    it("answers each change of a batch separately, in order, and ignores the demand of a refused one", async () => {
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
      expect(await usedOf(ledger, HOST, "VCPU")).toBe(7);
    });

    it("refuses a consumer that is not at the expected generation", async () => {
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

    it("treats an expected generation that no consumer can have as a mismatch", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1)]));
      const wrong = [-1, -2, -3, 2 ** 31, 1e300];
      expect(
        await apply(...wrong.map((expected) => change(replace(server("1"), expected, [item(HOST, "VCPU", 1)])))),
      ).toEqual(wrong.map((expected) => ({ kind: "consumer-conflict", consumer: server("1"), expected, actual: 1 })));
    });

    it("refuses a provider and an inventory that it does not know", async () => {
      expect(
        await apply(
          claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1), item(STRANGER, "VCPU", 1)]),
          claim(server("1"), INSTANCE, [item(GPU, "VCPU", 1)]),
          claim(server("1"), INSTANCE, [item(HOST, "CUSTOM_UNHEARD_OF", 1)]),
        ),
      ).toEqual([
        { kind: "unknown-provider", provider: STRANGER },
        { kind: "unknown-inventory", provider: GPU, resourceClass: "VCPU" },
        { kind: "unknown-inventory", provider: HOST, resourceClass: "CUSTOM_UNHEARD_OF" },
      ]);
      expect((await ledger.dump()).consumers).toEqual([]);
    });

    it("releases a consumer's allocation, and does no harm when repeated", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 3)]));
      const committed = { kind: "committed", generations: new Map() };
      expect(await apply(release(server("1"), INSTANCE), release(server("1"), INSTANCE))).toEqual([
        committed,
        committed,
      ]);
      expect(await ledger.allocationsOf(server("1"))).toEqual([]);
      expect(await usedOf(ledger, HOST, "VCPU")).toBe(0);
      expect((await ledger.dump()).consumers).toEqual([]);
    });

    it("swaps one host for another in one write, with room needed only on the new one", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 8)]));
      expect(await apply(swap(server("1"), INSTANCE, [item(OTHER, "VCPU", 2)]))).toEqual([
        { kind: "committed", generations: new Map([[server("1"), 2]]) },
      ]);
      expect([await usedOf(ledger, HOST, "VCPU"), await usedOf(ledger, OTHER, "VCPU")]).toEqual([0, 2]);
    });

    it("keeps the old host's allocation when a swap is refused", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 8)]));
      const before = await ledger.dump();
      expect(await apply(swap(server("1"), INSTANCE, [item(OTHER, "VCPU", 3)]))).toMatchObject([
        { kind: "no-capacity" },
      ]);
      expect(await ledger.dump()).toEqual(before);
    });

    it("grows a consumer in place, counting what it releases", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 6)]));
      expect(await apply(change(replace(server("1"), 1, [item(HOST, "VCPU", 8)])))).toMatchObject([
        { kind: "committed" },
      ]);
      expect(await apply(change(replace(server("1"), 2, [item(HOST, "VCPU", 9)])))).toEqual([
        {
          kind: "no-capacity",
          shortfalls: [
            { provider: HOST, resourceClass: "VCPU", reason: "max_unit", requested: 9, used: 0, limit: 8 },
            { provider: HOST, resourceClass: "VCPU", reason: "capacity", requested: 9, used: 0, limit: 8 },
          ],
        },
      ]);
    });

    it("moves a consumer's whole allocation to another one, unchanged", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 8)]));
      expect(await apply({ steps: [move(server("1"), server("2"))] })).toEqual([
        { kind: "committed", generations: new Map([[server("2"), 1]]) },
      ]);
      expect((await ledger.dump()).consumers).toEqual([
        { ...INSTANCE, type: "MIGRATION", uuid: server("2"), generation: 1, items: [item(HOST, "VCPU", 8)] },
      ]);
      expect(await usedOf(ledger, HOST, "VCPU")).toBe(8);
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
      expect(await usedOf(ledger, OTHER, "VCPU")).toBe(0);
    });

    it("refuses to move from a consumer without an allocation or to one that has one", async () => {
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

    it("undoes the steps before the one that failed", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 2)]));
      const before = await ledger.dump();
      const refused = { steps: [move(server("1"), server("2")), replace(server("3"), 5, [item(HOST, "VCPU", 1)])] };
      const [first, second] = await apply(refused, claim(server("2"), INSTANCE, [item(OTHER, "VCPU", 1)]));
      expect(first).toMatchObject({ kind: "consumer-conflict", consumer: server("3") });
      expect(second).toMatchObject({ kind: "committed" });
      await apply(release(server("2"), INSTANCE));
      expect(await ledger.dump()).toEqual(before);
    });

    it("lets one step use what another one releases", async () => {
      await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 8)]));
      const exchange = {
        steps: [replace(server("2"), null, [item(HOST, "VCPU", 8)]), replace(server("1"), "any" as const, [])],
      };
      expect(await apply(exchange)).toMatchObject([{ kind: "committed" }]);
    });

    describe("generations of providers", () => {
      const raise = (step: AllocationStep): AllocationChange => ({ steps: [step], bumpProviders: true });
      const generations = async () => (await ledger.dump()).providers.map(({ generation }) => generation);

      it("stay as they are unless a change asks to raise them", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1)]));
        await apply(swap(server("1"), INSTANCE, [item(OTHER, "VCPU", 1)]));
        expect(await generations()).toEqual([0, 0, 0]);
      });

      it("rise where a consumer gains an allocation, not where it loses one, once for all classes", async () => {
        await apply(raise(replace(server("1"), null, [item(HOST, "VCPU", 1), item(HOST, "MEMORY_MB", 64)])));
        expect(await generations()).toEqual([1, 0, 0]);
        await apply(raise(replace(server("1"), 1, [item(GPU, "CUSTOM_GPU_MILLI", 1), item(OTHER, "VCPU", 1)])));
        expect(await generations()).toEqual([1, 1, 1]);
      });

      it("rise where a consumer releases everything, even in one batch with its claim", async () => {
        const items = [item(HOST, "VCPU", 1), item(OTHER, "VCPU", 1)];
        await apply(raise(replace(server("1"), null, items)), raise(replace(server("1"), 1, [])));
        expect(await generations()).toEqual([2, 0, 2]);
      });

      it("rise once for each change, however many of its consumers gain or lose allocations", async () => {
        await apply(claim(server("1"), INSTANCE, [item(HOST, "VCPU", 1)]));
        const exchange = change(replace(server("1"), 1, []), replace(server("2"), null, [item(HOST, "VCPU", 1)]));
        await apply({ ...exchange, bumpProviders: true });
        expect(await generations()).toEqual([1, 0, 0]);
      });

      it("rise once for each of several new consumers, and not for one among them that does not fit", async () => {
        const small = raise(replace(server("2"), null, [item(HOST, "VCPU", 2), item(HOST, "MEMORY_MB", 192)]));
        const fitting = [raise(replace(server("1"), null, [item(HOST, "MEMORY_MB", 128)])), small];
        const odd = raise(replace(server("3"), "any", [item(HOST, "MEMORY_MB", 96), item(OTHER, "VCPU", 1)]));
        expect(await apply(...fitting, odd)).toMatchObject([
          { kind: "committed" },
          { kind: "committed" },
          { kind: "no-capacity", shortfalls: [{ reason: "step_size" }] },
        ]);
        expect(await generations()).toEqual([2, 0, 0]);
        await apply(raise(replace(server("4"), null, [item(OTHER, "VCPU", 1), item(HOST, "VCPU", 1)])));
        expect(await generations()).toEqual([3, 0, 1]);
        expect(await usedOf(ledger, HOST, "MEMORY_MB")).toBe(320);
      });

      it("do not rise with a refused change, nor when nothing was held", async () => {
        await apply(raise(replace(server("1"), null, [item(HOST, "VCPU", 9)])), raise(replace(server("2"), "any", [])));
        expect(await generations()).toEqual([0, 0, 0]);
      });
    });

    it("accepts names with quotes, braces and backslashes unchanged", async () => {
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
}
