import { expect, test } from "vitest";
import fc from "../../../test/rigs/property.ts";
import { provider } from "../../../test/rigs/view-builders.ts";
import { providerUuid, resourceClass } from "../../ledger/ids.ts";
import { LedgerView } from "../../ledger/ledger-view.ts";
import { BoundRequest } from "../bound/bound-request.ts";
import { ANY_TREE, requestGroup } from "../request.ts";
import { TreeSearch } from "./tree-search.ts";

const CLASS = resourceClass("BW");

/** Every way to put the amounts on the NICs, where equal amounts are interchangeable. Each way lists the NICs of each amount, sorted. */
function everyWay(amounts: readonly number[], nics: readonly number[]): Set<string> {
  const ways = new Set<string>();
  const free = [...nics];
  const on: number[] = [];
  const place = (index: number): void => {
    if (index === amounts.length) {
      ways.add(nameOf(amounts.map((amount, at) => [amount, on[at]!])));
      return;
    }
    for (let nic = 0; nic < nics.length; nic += 1) {
      if (free[nic]! < amounts[index]!) continue;
      free[nic] = free[nic]! - amounts[index]!;
      on[index] = nic;
      place(index + 1);
      free[nic] = free[nic]! + amounts[index]!;
    }
  };
  place(0);
  return ways;
}

const nameOf = (placed: readonly (readonly [amount: number, nic: number])[]): string =>
  placed
    .map(([amount, nic]) => `${amount} on ${nic}`)
    .sort()
    .join();

/** NICs of different sizes, so that no two are alike, and amounts of which some are equal. */
const scene = fc.record({
  nics: fc.uniqueArray(fc.integer({ min: 3, max: 16 }), { minLength: 1, maxLength: 3 }),
  amounts: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 7 }),
});

test("packing finds every possible way exactly once, although it cuts branches early", () => {
  fc.assert(
    fc.property(scene, ({ nics, amounts }) => {
      const view = new LedgerView();
      view.applyAll(provider("host", {}));
      nics.forEach((size, nic) => {
        view.applyAll(provider(`nic-${nic}`, { BW: size }, { parent: "host", root: "host" }));
      });
      const groups = amounts.map((amount, index) =>
        requestGroup({ suffix: `${index}`, resources: new Map([[CLASS, amount]]) }),
      );
      const request = new BoundRequest(view, { groups, groupPolicy: "none", trees: ANY_TREE, limit: 1 });
      const search = new TreeSearch(request).begin(view.slots.find(providerUuid("host")), 1_000_000);
      const found: string[] = [];
      for (let way = search.next(); way; way = search.next()) {
        const nicOf = new Map(way.mappings.map(({ suffix, slots }) => [suffix, view.slots.uuid(slots[0]!)]));
        found.push(
          nameOf(amounts.map((amount, index) => [amount, Number(String(nicOf.get(`${index}`)).slice("nic-".length))])),
        );
      }
      expect(search.gaveUp).toBe(false);
      expect(found.sort()).toEqual([...everyWay(amounts, nics)].sort());
    }),
    { numRuns: 300 },
  );
});
