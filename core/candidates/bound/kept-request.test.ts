import { expect, test } from "vitest";
import { provider, viewOf } from "../../../test/rigs/view-builders.ts";
import { providerUuid, resourceClass, trait } from "../../ledger/ids.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import { scanTrees } from "../best/scan-trees.ts";
import { ANY_TREE, requestGroup } from "../request.ts";
import { KeptRequest } from "./kept-request.ts";

const [OLD, NEW] = [resourceClass("CUSTOM_OLD"), resourceClass("CUSTOM_NEW")];

function fits(view: LedgerView, kept: KeptRequest): number {
  const { rootCount } = view.slots;
  return scanTrees(kept.current(), 0, rootCount, new Int32Array(rootCount));
}

const keptFor = (view: LedgerView, name: typeof OLD): KeptRequest =>
  new KeptRequest(view, {
    groups: [requestGroup({ resources: new Map([[name, 1]]) })],
    groupPolicy: "none",
    trees: ANY_TREE,
    limit: 1,
  });

test("finds a class by its name after that class or another one has been renamed", () => {
  const view = viewOf(provider("a", { CUSTOM_OLD: 4 }));
  const kept = [OLD, NEW].map((name) => keptFor(view, name));
  expect(kept.map((one) => fits(view, one))).toEqual([1, 0]);
  view.apply({ kind: "class-renamed", from: OLD, to: NEW });
  expect(kept.map((one) => fits(view, one))).toEqual([0, 1]);
});

test("finds a class that gets its first inventory after the request was compiled", () => {
  const view = viewOf(provider("a", { CUSTOM_OLD: 4 }));
  const kept = keptFor(view, NEW);
  expect(fits(view, kept)).toBe(0);
  view.applyAll(provider("a", { CUSTOM_NEW: 4 }));
  expect(fits(view, kept)).toBe(1);
});

test("finds a trait whose set got the number of a set that no provider has any longer", () => {
  const [a, b] = [providerUuid("a"), providerUuid("b")];
  const view = viewOf([...provider("a", { CUSTOM_OLD: 4 }), ...provider("b", { CUSTOM_OLD: 4 })]);
  const add = (of: typeof a, name: string) => ({ kind: "trait-added" as const, provider: of, trait: trait(name) });
  const remove = (of: typeof a, name: string) => ({ ...add(of, name), kind: "trait-removed" as const });
  view.applyAll([add(a, "X"), add(b, "Y")]);
  view.applyAll([remove(b, "Y")]);
  const requiredTraits = new Set([trait("Z")]);
  const kept = new KeptRequest(view, {
    groups: [requestGroup({ resources: new Map([[OLD, 1]]), requiredTraits })],
    groupPolicy: "none",
    trees: ANY_TREE,
    limit: 1,
  });
  expect(fits(view, kept)).toBe(0);
  const before = view.traits.count;
  view.applyAll([add(b, "Z")]);
  expect(view.traits.count).toBe(before);
  expect(fits(view, kept)).toBe(1);
});

test("reads no place beyond the compiled arrays when many providers come, none of which has the class", () => {
  const view = viewOf(provider("a", { CUSTOM_OLD: 4 }));
  const kept = keptFor(view, NEW);
  expect(kept.current().rootAmounts?.first.column.free.length).toBe(view.slots.capacity);
  const before = view.slots.capacity;
  view.applyAll(Array.from({ length: before + 1 }, (_, index) => provider(`b${index}`, { CUSTOM_OLD: 4 })).flat());
  expect(view.slots.capacity).toBeGreaterThan(before);
  expect(fits(view, kept)).toBe(0);
  expect(kept.current().rootAmounts?.first.column.free.length).toBe(view.slots.capacity);
});
