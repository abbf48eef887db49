import { describe, expect, it } from "vitest";
import fc from "../../../test/rigs/property.ts";
import {
  aggregateUuid,
  type ProviderUuid,
  providerUuid,
  type ResourceClass,
  resourceClass,
  trait,
} from "../../ledger/ids.ts";
import { LedgerView } from "../../ledger/ledger-view.ts";
import { capacityOf, type Inventory, type Provider } from "../../ledger/model.ts";
import { BoundRequest } from "../bound/bound-request.ts";
import { ANY_TREE, type CandidateRequest, type RequestGroup, requestGroup } from "../request.ts";
import { CandidateSearch } from "./candidate-search.ts";
import { hasGroupRules } from "./group-rules.ts";
import { type Assignment, TreeSearch } from "./tree-search.ts";

/** One part of a request and the provider that serves it, as the reference implementation finds them. */
interface Part {
  readonly group: RequestGroup;
  readonly resources: ReadonlyMap<ResourceClass, number>;
}

const CLASSES = [resourceClass("A"), resourceClass("B")] as const;
const TRAITS = [trait("X"), trait("Y")] as const;
const AGGREGATE = aggregateUuid("agg");

const inventory = fc
  .record({
    total: fc.integer({ min: 1, max: 4 }),
    maxUnit: fc.integer({ min: 1, max: 4 }),
    stepSize: fc.constantFrom(1, 1, 2),
    used: fc.integer({ min: 0, max: 2 }),
  })
  .map(({ total, maxUnit, stepSize, used }): Inventory & { used: number } => ({
    total,
    reserved: 0,
    minUnit: 1,
    maxUnit,
    stepSize,
    allocationRatio: 1,
    used,
  }));
const providerSpec = fc.record({
  parent: fc.nat({ max: 4 }),
  inventories: fc.dictionary(fc.constantFrom(...CLASSES), inventory, { maxKeys: 2 }),
  traits: fc.subarray([...TRAITS]),
  inAggregate: fc.boolean(),
});
/** Trees of few distinct providers, so that some are alike. */
const treeSpec = fc
  .array(providerSpec, { minLength: 1, maxLength: 2 })
  .chain((models) => fc.array(fc.constantFrom(...models), { minLength: 1, maxLength: 5 }));
const groupSpec = fc.record({
  resources: fc.dictionary(fc.constantFrom(...CLASSES), fc.integer({ min: 1, max: 2 }), { maxKeys: 2 }),
  requiredTraits: fc.subarray([...TRAITS], { maxLength: 1 }),
  forbiddenTraits: fc.subarray([...TRAITS], { maxLength: 1 }),
  anyOf: fc.boolean(),
  memberOf: fc.constantFrom("any", "any", "in", "out"),
});
/** The numbered groups that each rule names. */
const rulesSpec = fc.record({
  sameSubtree: fc.array(fc.subarray([0, 1, 2, 3], { minLength: 2 }), { maxLength: 2 }),
  apart: fc.array(fc.subarray([0, 1, 2, 3], { minLength: 2 }), { maxLength: 1 }),
  rootTrait: fc.constantFrom("any", "any", "any", "required", "forbidden"),
  rootAggregate: fc.constantFrom("any", "any", "any", "in", "out"),
});
const groupsSpec = fc
  .array(groupSpec, { minLength: 1, maxLength: 2 })
  .chain((models) => fc.tuple(fc.boolean(), fc.array(fc.constantFrom(...models), { minLength: 1, maxLength: 4 })));

type TreeSpec = typeof treeSpec extends fc.Arbitrary<infer T> ? T : never;

/** Builds a view of trees whose providers are named `p0`, `p1`, … in the first tree and `q0`, `q1`, … in the second. */
function buildView(...trees: readonly TreeSpec[]): LedgerView {
  const view = new LedgerView();
  trees.forEach((tree, index) => {
    putTree(view, tree, ["p", "q"][index]!);
  });
  return view;
}

function putTree(view: LedgerView, tree: TreeSpec, letter: string): void {
  tree.forEach((spec, index) => {
    const uuid = providerUuid(`${letter}${index}`);
    const parent = index === 0 ? null : providerUuid(`${letter}${Math.min(spec.parent, index - 1)}`);
    view.apply({ kind: "provider-put", uuid, name: uuid, parent, root: providerUuid(`${letter}0`), generation: 0 });
    for (const [name, { used, ...rest }] of Object.entries(spec.inventories)) {
      view.apply({ kind: "inventory-put", provider: uuid, resourceClass: resourceClass(name), inventory: rest, used });
    }
    for (const name of spec.traits) view.apply({ kind: "trait-added", provider: uuid, trait: name });
    if (spec.inAggregate) view.apply({ kind: "aggregate-added", provider: uuid, aggregate: AGGREGATE });
  });
}

type Rules = typeof rulesSpec extends fc.Arbitrary<infer T> ? T : never;

function buildRequest(
  unnumbered: boolean,
  specs: readonly (typeof groupSpec extends fc.Arbitrary<infer T> ? T : never)[],
  isolate: boolean,
  rules: Rules = { sameSubtree: [], apart: [], rootTrait: "any", rootAggregate: "any" },
): CandidateRequest {
  const asks = (spec: (typeof specs)[number] | undefined) => Object.keys(spec?.resources ?? {}).length > 0;
  const groups = specs.map((spec, index) =>
    requestGroup({
      suffix: index === 0 && unnumbered && asks(spec) ? "" : `${index}`,
      resources: new Map(Object.entries(spec.resources).map(([name, amount]) => [resourceClass(name), amount])),
      requiredTraits: new Set(spec.requiredTraits),
      requiredAny: spec.anyOf ? [new Set(TRAITS)] : [],
      forbiddenTraits: new Set(spec.forbiddenTraits),
      memberOf: spec.memberOf === "in" ? [new Set([AGGREGATE])] : [],
      forbiddenAggregates: spec.memberOf === "out" ? new Set([AGGREGATE]) : new Set(),
    }),
  );
  const named = (lists: readonly (readonly number[])[]) => lists.map((list) => list.map((index) => `${index}`));
  return {
    groups,
    groupPolicy: isolate ? "isolate" : "none",
    sameSubtree: named(rules.sameSubtree),
    apart: named(rules.apart),
    rootRules: {
      requiredTraits: new Set(rules.rootTrait === "required" ? [TRAITS[0]] : []),
      forbiddenTraits: new Set(rules.rootTrait === "forbidden" ? [TRAITS[0]] : []),
      memberOf: rules.rootAggregate === "in" ? [new Set([AGGREGATE])] : [],
      forbiddenAggregates: new Set(rules.rootAggregate === "out" ? [AGGREGATE] : []),
    },
    trees: ANY_TREE,
    limit: 100_000,
  };
}

/** All properties that distinguish a provider from another one, as text. */
function likenessOfProvider(provider: Provider, request: CandidateRequest, parents: ReadonlySet<string>): string {
  const classes = new Set(request.groups.flatMap((group) => [...group.resources.keys()]));
  const inventories = [...provider.inventories]
    .filter(([name]) => classes.has(name))
    .map(([name, inv]) => `${name}:${capacityOf(inv) - inv.used}:${inv.minUnit}:${inv.maxUnit}:${inv.stepSize}`)
    .sort();
  // Under rules between groups, a provider that has children is like no other.
  const name = hasGroupRules(request) && parents.has(provider.uuid) ? provider.uuid : "";
  return JSON.stringify([name, provider.parent, inventories, [...provider.traits].sort(), [...provider.aggregates]]);
}
function likenessOfGroup(group: RequestGroup, request: CandidateRequest): string {
  if (group.suffix === "") return "unnumbered";
  const naming = (lists: readonly (readonly string[])[] = []) => lists.map((list) => list.includes(group.suffix));
  const { resources, requiredTraits, requiredAny, forbiddenTraits, memberOf, forbiddenAggregates } = group;
  return JSON.stringify([
    [...resources].sort(),
    [...requiredTraits],
    requiredAny.length,
    [...forbiddenTraits],
    memberOf.length,
    [...forbiddenAggregates],
    naming(request.sameSubtree),
    naming(request.apart),
  ]);
}

/** A text that is equal for ways that differ only in which of several interchangeable groups is which. */
function canonical(
  placed: readonly (readonly [label: string, provider: Provider])[],
  request: CandidateRequest,
  parents: ReadonlySet<string>,
): string {
  const loads = new Map<Provider, string[]>();
  for (const [label, provider] of placed) loads.set(provider, [...(loads.get(provider) ?? []), label]);
  return [...loads]
    .map(([provider, labels]) => `${likenessOfProvider(provider, request, parents)} takes ${labels.sort().join(" + ")}`)
    .sort()
    .join("; ");
}

function serves(part: Part, provider: Provider, root: Provider): boolean {
  const { group } = part;
  const spans = group.suffix === "" ? [provider, root] : [provider];
  const inAggregate = (of: Provider) => of.aggregates.has(AGGREGATE);
  if (group.memberOf.length > 0 && !spans.some(inAggregate)) return false;
  if (group.forbiddenAggregates.size > 0 && spans.some(inAggregate)) return false;
  if ([...group.forbiddenTraits].some((name) => provider.traits.has(name))) return false;
  if (group.suffix !== "" && !hasTraits(group, [provider])) return false;
  return [...part.resources].every(([name, amount]) => {
    const inv = provider.inventories.get(name);
    return inv !== undefined && amount >= inv.minUnit && amount <= inv.maxUnit && amount % inv.stepSize === 0;
  });
}
function hasTraits(group: RequestGroup, providers: readonly Provider[]): boolean {
  const has = (name: (typeof TRAITS)[number]) => providers.some((provider) => provider.traits.has(name));
  return [...group.requiredTraits].every(has) && group.requiredAny.every((names) => [...names].some(has));
}
function capacityHolds(parts: readonly Part[], chosen: readonly Provider[]): boolean {
  return chosen.every((provider) =>
    [...provider.inventories].every(([name, inv]) => {
      const sum = parts.reduce(
        (total, part, index) => total + (chosen[index] === provider ? (part.resources.get(name) ?? 0) : 0),
        0,
      );
      return sum === 0 || (sum <= inv.maxUnit && inv.used + sum <= capacityOf(inv));
    }),
  );
}

function keepsRules(
  request: CandidateRequest,
  placed: readonly (readonly [suffix: string, provider: Provider])[],
  providers: readonly Provider[],
): boolean {
  const parentOf = (one: Provider) => providers.find((other) => other.uuid === one.parent);
  const lineOf = (one: Provider | undefined): Provider[] => (one ? [one, ...lineOf(parentOf(one))] : []);
  const of = (list: readonly string[]) => placed.flatMap(([suffix, one]) => (list.includes(suffix) ? [one] : []));
  const oneSubtree = (list: readonly string[]) => {
    const named = of(list);
    return named.length === 0 || named.some((top) => named.every((one) => lineOf(one).includes(top)));
  };
  const areApart = (list: readonly string[]) => {
    const below = of(list).filter((one) => one.parent !== null);
    return new Set(below).size === below.length;
  };
  return (request.sameSubtree ?? []).every(oneSubtree) && (request.apart ?? []).every(areApart);
}
function rootServes({ rootRules }: CandidateRequest, root: Provider): boolean {
  if (!rootRules) return true;
  return (
    [...rootRules.requiredTraits].every((name) => root.traits.has(name)) &&
    ![...rootRules.forbiddenTraits].some((name) => root.traits.has(name)) &&
    rootRules.memberOf.every((set) => [...set].some((name) => root.aggregates.has(name))) &&
    ![...rootRules.forbiddenAggregates].some((name) => root.aggregates.has(name))
  );
}
const parentsOf = (providers: Iterable<Provider>) => new Set([...providers].flatMap(({ parent }) => parent ?? []));

/** All assignments of parts to providers, tried one by one. */
function bruteForce(view: LedgerView, request: CandidateRequest): Set<string> {
  const providers = view.tree(providerUuid("p0")).map((uuid) => view.provider(uuid)!);
  const parts: Part[] = request.groups.flatMap((group) =>
    group.suffix === ""
      ? [...group.resources].map((entry) => ({ group, resources: new Map([entry]) }))
      : [{ group, resources: group.resources }],
  );
  const found = new Set<string>();
  if (!rootServes(request, providers[0]!)) return found;
  const parents = parentsOf(providers);
  const chosen: Provider[] = [];
  const go = () => {
    if (chosen.length === parts.length) {
      const numbered = chosen.filter((_, index) => parts[index]!.group.suffix !== "");
      if (request.groupPolicy === "isolate" && new Set(numbered).size < numbered.length) return;
      const unnumbered = chosen.filter((_, index) => parts[index]!.group.suffix === "");
      const group = request.groups.find((candidate) => candidate.suffix === "");
      if (group && !hasTraits(group, unnumbered)) return;
      if (!capacityHolds(parts, chosen)) return;
      const placed = parts.flatMap(({ group: { suffix } }, index) =>
        suffix === "" ? [] : [[suffix, chosen[index]!] as const],
      );
      if (!keepsRules(request, placed, providers)) return;
      found.add(
        canonical(
          parts.map((part, index) => [labelOf(part, request), chosen[index]!] as const),
          request,
          parents,
        ),
      );
      return;
    }
    for (const provider of providers) {
      if (!serves(parts[chosen.length]!, provider, providers[0]!)) continue;
      chosen.push(provider);
      go();
      chosen.pop();
    }
  };
  go();
  return found;
}
const labelOf = (part: Part, request: CandidateRequest) =>
  part.group.suffix === "" ? `unnumbered ${[...part.resources.keys()][0]}` : likenessOfGroup(part.group, request);

/** The search's answers in the reference's terms. The amounts show which provider gives a class of the unnumbered group. */
function searched(view: LedgerView, request: CandidateRequest): string[] {
  const providers = new Map(view.tree(providerUuid("p0")).map((uuid) => [uuid, view.provider(uuid)!]));
  return [...new CandidateSearch(view, request, { workPerTree: 1_000_000 })].map((candidate) => {
    const left = new Map(candidate.items.map((item) => [`${item.provider}/${item.resourceClass}`, item.amount]));
    const placed: (readonly [string, Provider])[] = [];
    const take = (uuid: ProviderUuid, name: ResourceClass, amount: number) => {
      const key = `${uuid}/${name}`;
      left.set(key, (left.get(key) ?? 0) - amount);
    };
    for (const group of request.groups) {
      if (group.suffix === "") continue;
      const [uuid, ...others] = candidate.mappings.get(group.suffix)!;
      expect(others).toEqual([]);
      for (const [name, amount] of group.resources) take(uuid!, name, amount);
      placed.push([likenessOfGroup(group, request), providers.get(uuid!)!]);
    }
    const unnumbered = request.groups.find((group) => group.suffix === "");
    for (const [name, amount] of unnumbered?.resources ?? []) {
      const uuid = candidate.mappings.get("")!.find((serving) => left.get(`${serving}/${name}`) === amount)!;
      take(uuid, name, amount);
      placed.push([`unnumbered ${name}`, providers.get(uuid)!]);
    }
    expect([...left.values()].every((amount) => amount === 0)).toBe(true);
    return canonical(placed, request, parentsOf(providers.values()));
  });
}

describe("candidate search compared with trying everything", () => {
  it("finds each answer exactly once, with equivalent answers counted as one", () => {
    fc.assert(
      fc.property(treeSpec, groupsSpec, fc.boolean(), (tree, [unnumbered, groups], isolate) => {
        const view = buildView(tree);
        const request = buildRequest(unnumbered, groups, isolate);
        const answers = searched(view, request);
        expect(new Set(answers).size).toBe(answers.length);
        expect(answers.sort()).toEqual([...bruteForce(view, request)].sort());
      }),
      { numRuns: 2000 },
    );
  });

  it("keeps the rules for same_subtree, for isolated groups and for the root", () => {
    fc.assert(
      fc.property(treeSpec, groupsSpec, fc.boolean(), rulesSpec, (tree, [unnumbered, groups], isolate, rules) => {
        const view = buildView(tree);
        const request = buildRequest(unnumbered, groups, isolate, rules);
        const answers = searched(view, request);
        expect(new Set(answers).size).toBe(answers.length);
        expect(answers.sort()).toEqual([...bruteForce(view, request)].sort());
      }),
      { numRuns: 2000 },
    );
  });

  it("finds the same ways for a tree regardless of the tree searched before and of how far that search went", () => {
    const before = fc.record({ tree: treeSpec, ways: fc.nat({ max: 4 }), steps: fc.integer({ min: 1, max: 200 }) });
    fc.assert(
      fc.property(before, treeSpec, groupsSpec, fc.boolean(), rulesSpec, (other, tree, asked, isolate, rules) => {
        const view = buildView(tree, other.tree);
        const request = new BoundRequest(view, buildRequest(...asked, isolate, rules));
        const rootOf = (name: string) => view.slots.find(providerUuid(name));
        const used = new TreeSearch(request).begin(rootOf("q0"), other.steps);
        for (let way = 0; way < other.ways; way += 1) used.next();
        const fresh = new TreeSearch(request);
        expect(waysOf(used.begin(rootOf("p0"), 1_000_000))).toEqual(waysOf(fresh.begin(rootOf("p0"), 1_000_000)));
      }),
      { numRuns: 1000 },
    );
  });
});

function waysOf(search: TreeSearch): Assignment[] {
  const ways: Assignment[] = [];
  for (let way = search.next(); way; way = search.next()) ways.push(way);
  return ways;
}
