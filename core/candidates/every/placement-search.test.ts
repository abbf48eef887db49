import { describe, expect, test } from "vitest";
import fc from "../../../test/rigs/property.ts";
import { aggregateUuid, providerUuid, resourceClass, type Trait, trait } from "../../ledger/ids.ts";
import { LedgerView } from "../../ledger/ledger-view.ts";
import type { Inventory, Provider } from "../../ledger/model.ts";
import { type PlacementCandidateRequest, type RequestGroup, requestGroup } from "../request.ts";
import { type GenerationStrategy, PlacementSearch } from "./placement-search.ts";
import { describeCandidate, referenceCandidates } from "./reference-candidates.ts";

const CLASSES = ["VCPU", "MEMORY_MB", "SRIOV_NET_VF"].map(resourceClass);
const TRAITS = ["CUSTOM_A", "CUSTOM_B", "MISC_SHARES_VIA_AGGREGATE"].map(trait);
const AGGREGATES = ["agg-1", "agg-2"].map(aggregateUuid);

const SHARING = TRAITS[2]!;
const group = (
  suffix: string,
  resources: Readonly<Record<string, number>>,
  more: Partial<RequestGroup> = {},
): RequestGroup =>
  requestGroup({
    suffix,
    resources: new Map(Object.entries(resources).map(([name, amount]) => [resourceClass(name), amount])),
    ...more,
  });
const asking = (
  groups: readonly RequestGroup[],
  more: Partial<PlacementCandidateRequest> = {},
): PlacementCandidateRequest => ({
  groups,
  groupPolicy: "none",
  limit: null,
  nested: true,
  ...more,
});

function provider(
  uuid: string,
  parent: Provider | null,
  units: Readonly<Record<string, Partial<Inventory> & { used?: number }>>,
  more: Partial<Provider> = {},
): Provider {
  const full = { reserved: 0, minUnit: 1, maxUnit: 100, stepSize: 1, allocationRatio: 1, used: 0, total: 1 };
  return {
    uuid: providerUuid(uuid),
    name: uuid,
    parent: parent?.uuid ?? null,
    root: parent?.root ?? providerUuid(uuid),
    generation: 0,
    inventories: new Map(Object.entries(units).map(([name, unit]) => [resourceClass(name), { ...full, ...unit }])),
    traits: new Set(),
    aggregates: new Set(),
    ...more,
  };
}

function viewOf(providers: readonly Provider[]): LedgerView {
  const view = new LedgerView();
  for (const one of providers) {
    view.apply({
      kind: "provider-put",
      uuid: one.uuid,
      name: one.name,
      parent: one.parent,
      root: one.root,
      generation: one.generation,
    });
    for (const [name, inventory] of one.inventories) {
      view.apply({ kind: "inventory-put", provider: one.uuid, resourceClass: name, inventory, used: inventory.used });
    }
    for (const name of one.traits) view.apply({ kind: "trait-added", provider: one.uuid, trait: name });
    for (const aggregate of one.aggregates) view.apply({ kind: "aggregate-added", provider: one.uuid, aggregate });
  }
  return view;
}

function search(
  providers: readonly Provider[],
  wanted: PlacementCandidateRequest,
  strategy: GenerationStrategy = "depth-first",
  limit = 100_000,
  steps = 1e7,
) {
  const bound = { stepsLeft: steps };
  const view = viewOf(providers);
  const candidates = new PlacementSearch(view, wanted, bound, { strategy });
  const found: string[] = [];
  while (found.length < limit) {
    const candidate = candidates.next();
    if (candidate === null) break;
    found.push(describeCandidate(candidate));
  }
  return { found, bound, providers: candidates.providers().map((slot) => view.slots.uuid(slot)) };
}

const arbitraryInventory = fc.record({
  total: fc.integer({ min: 1, max: 4 }),
  used: fc.integer({ min: 0, max: 3 }),
  maxUnit: fc.integer({ min: 1, max: 4 }),
  minUnit: fc.integer({ min: 1, max: 2 }),
  stepSize: fc.constantFrom(1, 1, 2),
});
const arbitraryProviders = fc
  .array(
    fc.record({
      parentAt: fc.integer({ min: -3, max: 6 }),
      units: fc.dictionary(fc.constantFrom(...CLASSES), arbitraryInventory, { maxKeys: 3 }),
      traits: fc.uniqueArray(fc.constantFrom(...TRAITS), { maxLength: 2 }),
      aggregates: fc.uniqueArray(fc.constantFrom(...AGGREGATES), { maxLength: 2 }),
    }),
    { minLength: 1, maxLength: 7 },
  )
  .map((rows) => {
    const made: Provider[] = [];
    rows.forEach((row, at) => {
      const parent = row.parentAt >= 0 && row.parentAt < at ? made[row.parentAt]! : null;
      made.push(
        provider(`p${at}`, parent, row.units, { traits: new Set(row.traits), aggregates: new Set(row.aggregates) }),
      );
    });
    return made;
  });
const someOf = <Name>(names: readonly Name[], bounds: { minLength?: number; maxLength?: number }) =>
  fc.uniqueArray(fc.constantFrom(...names), { maxLength: names.length, ...bounds }).map((some) => new Set(some));
const arbitraryRules = fc.record({
  requiredTraits: someOf(TRAITS.slice(0, 2), { maxLength: 1 }),
  requiredAny: fc.array(someOf(TRAITS.slice(0, 2), { minLength: 1 }), { maxLength: 1 }),
  forbiddenTraits: someOf(TRAITS.slice(0, 2), { maxLength: 1 }),
  memberOf: fc.array(someOf(AGGREGATES, { minLength: 1 }), { maxLength: 1 }),
  forbiddenAggregates: someOf(AGGREGATES, { maxLength: 1 }),
});
const arbitraryGroup = (suffix: string) =>
  fc
    .record({
      resources: fc.dictionary(fc.constantFrom(...CLASSES), fc.integer({ min: 1, max: 3 }), {
        minKeys: suffix === "" ? 1 : 0,
        maxKeys: 2,
      }),
      rules: fc.option(arbitraryRules, { nil: undefined, freq: 3 }),
      inTree: fc.option(fc.constantFrom("p0", "p1", "p9"), { nil: undefined, freq: 6 }),
    })
    .map(({ resources, rules, inTree }) =>
      group(suffix, resources, { ...rules, ...(inTree ? { inTree: providerUuid(inTree) } : {}) }),
    );
const arbitraryRequest = fc
  .record({
    plain: fc.option(arbitraryGroup(""), { nil: undefined }),
    numbered: fc.tuple(arbitraryGroup("1"), arbitraryGroup("2"), arbitraryGroup("3")),
    count: fc.integer({ min: 0, max: 3 }),
    groupPolicy: fc.constantFrom("none" as const, "isolate" as const),
    subtree: fc.boolean(),
    nested: fc.boolean(),
    rootTrait: fc.option(fc.constantFrom(...TRAITS.slice(0, 2)), { nil: undefined, freq: 4 }),
  })
  .filter(({ plain, count }) => plain !== undefined || count > 0)
  .map(({ plain, numbered, count, groupPolicy, subtree, nested, rootTrait }) =>
    asking([...(plain ? [plain] : []), ...numbered.slice(0, count)], {
      groupPolicy,
      nested,
      sameSubtree: subtree && count > 1 ? [["1", "2"]] : [],
      rootRules: { requiredTraits: new Set(rootTrait ? [rootTrait] : []), forbiddenTraits: new Set<Trait>() },
    }),
  );

describe("the search for Placement's candidates", () => {
  test("finds the same candidates as trying every combination, for any trees and request", () => {
    fc.assert(
      fc.property(
        arbitraryProviders,
        arbitraryRequest,
        fc.constantFrom("depth-first" as const, "breadth-first" as const),
        (providers, wanted, strategy) => {
          const { found } = search(providers, wanted, strategy);
          expect(found.toSorted()).toEqual([...referenceCandidates(providers, wanted)].toSorted());
        },
      ),
      { numRuns: 1_500 },
    );
  });

  test("returns as many candidates as requested, each of them one that an unlimited search returns", () => {
    fc.assert(
      fc.property(arbitraryProviders, arbitraryRequest, fc.integer({ min: 1, max: 4 }), (providers, wanted, limit) => {
        const all = search(providers, wanted).found;
        const some = search(providers, wanted, "breadth-first", limit).found;
        expect(some).toHaveLength(Math.min(limit, all.length));
        expect(new Set(all).isSupersetOf(new Set(some))).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  const wide = (children: number): Provider[] => {
    const root = provider("root", null, {});
    return [
      root,
      ...Array.from({ length: children }, (_, at) => provider(`child-${at}`, root, { VGPU: { total: 1 } })),
    ];
  };
  const groupsOfOne = (count: number): RequestGroup[] =>
    Array.from({ length: count }, (_, at) => group(`${at + 1}`, { VGPU: 1 }));

  test.each([
    [8, 8],
    [8, 48],
    [48, 48],
  ])(
    "asks for a thousand of %i groups over %i like children at a cost in answers, not in combinations",
    (groups, children) => {
      for (const groupPolicy of ["none", "isolate"] as const) {
        const { found, bound } = search(
          wide(children),
          asking(groupsOfOne(groups), { groupPolicy }),
          "depth-first",
          1_000,
          1e6,
        );
        expect(found).toHaveLength(1_000);
        expect(new Set(found).size).toBe(1_000);
        expect(bound.stepsLeft).toBeGreaterThan(0);
      }
    },
  );

  test("finds without trying that nine groups do not fit eight equivalent children", () => {
    for (const groupPolicy of ["none", "isolate"] as const) {
      const { found, bound } = search(wide(8), asking(groupsOfOne(9), { groupPolicy }), "depth-first", 1_000, 1e6);
      expect(found).toEqual([]);
      expect(bound.stepsLeft).toBe(1e6);
    }
  });

  test("stops at its bound on work and returns the candidates found so far", () => {
    const { found, bound } = search(
      wide(8),
      asking(groupsOfOne(8), { groupPolicy: "isolate" }),
      "depth-first",
      100_000,
      5_000,
    );
    expect(bound.stepsLeft).toBe(0);
    expect(found.length).toBeGreaterThan(0);
    expect(found.length).toBeLessThan(40_320);
  });

  test("alternates between trees breadth-first, and finishes one tree after the other depth-first", () => {
    const trees = ["a", "b"].flatMap((name) => {
      const root = provider(name, null, {});
      return [root, provider(`${name}1`, root, { VCPU: {} }), provider(`${name}2`, root, { VCPU: {} })];
    });
    const roots = (found: readonly string[]): string[] => found.map((text) => text[0]!);
    const wanted = asking([group("1", { VCPU: 1 })]);
    expect(roots(search(trees, wanted, "depth-first").found)).toEqual(["a", "a", "b", "b"]);
    expect(roots(search(trees, wanted, "breadth-first").found)).toEqual(["a", "b", "a", "b"]);
  });

  test("finds a candidate of shared inventory once, however many trees share it", () => {
    const aggregates = new Set([AGGREGATES[0]!]);
    const lender = provider("lender", null, { DISK_GB: {} }, { aggregates, traits: new Set([SHARING]) });
    const borrowers = ["x", "y"].map((name) => provider(name, null, { VCPU: {} }, { aggregates }));
    expect(search([lender, ...borrowers], asking([group("", { DISK_GB: 1 })])).found).toHaveLength(1);
    expect(search([lender, ...borrowers], asking([group("", { DISK_GB: 1, VCPU: 1 })])).found).toHaveLength(2);
  });

  test("lets providers have a hundred required traits between them, and finds nothing when one trait is missing", () => {
    const traits = Array.from({ length: 100 }, (_, at) => trait(`CUSTOM_${at}`));
    const root = provider("root", null, { VCPU: {} }, { traits: new Set(traits.slice(0, 40)) });
    const child = provider("child", root, { DISK_GB: {} }, { traits: new Set(traits.slice(40)) });
    const poor = provider("child", root, { DISK_GB: {} }, { traits: new Set(traits.slice(40, 99)) });
    const wanted = asking([group("", { VCPU: 1, DISK_GB: 1 }, { requiredTraits: new Set(traits) })]);
    expect(search([root, child], wanted).found).toHaveLength(1);
    expect(search([root, poor], wanted).found).toEqual([]);
  });

  test("lists every provider of the trees that contributed, and no other", () => {
    const [root, child] = wide(1) as [Provider, Provider];
    const { providers } = search([root, child, provider("other", null, {})], asking([group("1", { VGPU: 1 })]));
    expect(providers).toEqual([root.uuid, child.uuid]);
  });
});
