import type { AggregateUuid, ResourceClass, Trait } from "../../ledger/ids.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { NamedSets } from "../../ledger/named-sets.ts";
import { type PlacementCandidateRequest, type RequestGroup, type RootTraits, requiredRules } from "../request.ts";
import { type RequestedAmount, requestAmount } from "./requested-amount.ts";

/**
 * Whether a set of names meets a condition. The answer is computed once for each distinct set and then looked up by its
 * number.
 */
export type SetTest = (set: number) => boolean;

/** An amount of a Placement request. `index` numbers the classes of the whole request. */
export interface IndexedAmount extends RequestedAmount {
  readonly index: number;
}

/**
 * Rules on traits that several providers must satisfy together: `bitsOf` has a bit for each rule that a set satisfies, and `all` has the
 * bits of all rules.
 */
export interface SharedOut {
  readonly bitsOf: (set: number) => number;
  readonly all: number;
}

/** A group prepared for the current state of one view. */
export interface BoundPlacementGroup {
  readonly suffix: string;
  readonly amounts: readonly IndexedAmount[];
  readonly traitsServe: SetTest;
  /** Whether the set holds a forbidden trait. */
  readonly traitsForbidden: SetTest;
  /**
   * Only for the group without suffix, whose providers may have the required traits between them. It is split into parts whose bits fit a
   * number.
   */
  readonly sharedOut: readonly SharedOut[];
  readonly isMember: SetTest;
  readonly isForbiddenMember: SetTest;
  /** Slot of the root of the only permitted tree, or -1 when any tree is permitted. */
  readonly treeRoot: number;
  /** Upstream finds no provider for a group without resources unless it requires traits or aggregates. */
  readonly findsNothing: boolean;
}

export interface BoundPlacementRequest {
  readonly groups: readonly BoundPlacementGroup[];
  readonly classCount: number;
  readonly isolate: boolean;
  /** Whether two or more numbered groups ask for the same amounts of the same classes. */
  readonly hasEqualGroups: boolean;
  readonly sameSubtree: readonly (readonly string[])[];
  readonly rootServes: SetTest;
  /** Admits only candidates with one provider of each tree (API before 1.29, in a cloud that has trees). */
  readonly flatOnly: boolean;
}

/** Maximum number of rules whose bits fit a 32-bit number without its sign. */
const SHARED_OUT_RULES_MAX = 31;

/** Prepares a request for a view. Returns null when no provider of the view can serve it, because the view does not know a class or tree. */
export function bindPlacementRequest(
  view: LedgerView,
  request: PlacementCandidateRequest,
): BoundPlacementRequest | null {
  const classes = new Map<ResourceClass, number>();
  const groups: BoundPlacementGroup[] = [];
  for (const group of request.groups) {
    const bound = bindGroup(view, group, classes);
    if (bound === null) return null;
    groups.push(bound);
  }
  const { slots } = view;
  return {
    groups,
    classCount: classes.size,
    isolate: request.groupPolicy === "isolate",
    hasEqualGroups: countDistinct(groups) < groups.length,
    sameSubtree: request.sameSubtree ?? [],
    rootServes: rootTest(view, request.rootRules),
    flatOnly: !request.nested && slots.knownCount > slots.rootCount,
  };
}

function bindGroup(
  view: LedgerView,
  group: RequestGroup,
  classes: Map<ResourceClass, number>,
): BoundPlacementGroup | null {
  const amounts: IndexedAmount[] = [];
  for (const [resourceClass, amount] of group.resources) {
    const column = view.column(resourceClass);
    if (column === undefined) return null;
    if (!classes.has(resourceClass)) classes.set(resourceClass, classes.size);
    amounts.push({ ...requestAmount(resourceClass, amount, column), index: classes.get(resourceClass)! });
  }
  let treeRoot = -1;
  if (group.inTree !== null) {
    const slot = view.slots.find(group.inTree);
    if (slot < 0) return null;
    treeRoot = view.slots.root[slot]!;
  }
  const required = requiredRules(group);
  const { memberOf, forbiddenTraits, forbiddenAggregates } = group;
  return {
    suffix: group.suffix,
    amounts,
    traitsServe: traitTest(view.traits, required, forbiddenTraits),
    traitsForbidden: anyTest(view.traits, forbiddenTraits),
    sharedOut: sharedOut(view.traits, required),
    isMember: allTest(view.aggregates, memberOf),
    isForbiddenMember: anyTest(view.aggregates, forbiddenAggregates),
    treeRoot,
    findsNothing: amounts.length === 0 && required.length === 0 && memberOf.length === 0,
  };
}

function rootTest({ traits }: LedgerView, rules: RootTraits | undefined): SetTest {
  if (rules === undefined) return () => true;
  return traitTest(
    traits,
    [...rules.requiredTraits].map((name) => [name]),
    rules.forbiddenTraits,
  );
}

/** Counts the groups that ask for different things. The group without suffix never equals another one. */
function countDistinct(groups: readonly BoundPlacementGroup[]): number {
  const marks = groups.map(({ suffix, amounts }) =>
    suffix === "" ? "" : amounts.map((requested) => `${requested.index}:${requested.amount}`).join(),
  );
  return new Set(marks).size;
}

/** Remembers the result for each set, since thousands of providers share a few sets. */
function memoised(compute: (set: number) => number): (set: number) => number {
  const known: (number | undefined)[] = [];
  return (set) => {
    known[set] ??= compute(set);
    return known[set]!;
  };
}

function anyTest<Name extends Trait | AggregateUuid>(sets: Readonly<NamedSets<Name>>, names: Iterable<Name>): SetTest {
  const ids = [...names].map((name) => sets.idOf(name)).filter((id) => id >= 0);
  if (ids.length === 0) return () => false;
  const test = memoised((set) => (ids.some((id) => sets.has(set, id)) ? 1 : 0));
  return (set) => test(set) === 1;
}

function allTest<Name extends Trait | AggregateUuid>(
  sets: Readonly<NamedSets<Name>>,
  rules: readonly Iterable<Name>[],
): SetTest {
  if (rules.length === 0) return () => true;
  const idRules = rules.map((any) => [...any].map((name) => sets.idOf(name)).filter((id) => id >= 0));
  const test = memoised((set) => (idRules.every((any) => any.some((id) => sets.has(set, id))) ? 1 : 0));
  return (set) => test(set) === 1;
}

function traitTest(
  sets: Readonly<NamedSets<Trait>>,
  required: readonly (readonly Trait[])[],
  forbidden: ReadonlySet<Trait>,
): SetTest {
  const has = allTest(sets, required);
  const bad = anyTest(sets, forbidden);
  return (set) => has(set) && !bad(set);
}

function sharedOut(sets: Readonly<NamedSets<Trait>>, rules: readonly (readonly Trait[])[]): readonly SharedOut[] {
  const parts: SharedOut[] = [];
  for (let from = 0; from < rules.length; from += SHARED_OUT_RULES_MAX) {
    const part = rules.slice(from, from + SHARED_OUT_RULES_MAX);
    const idRules = part.map((any) => any.map((name) => sets.idOf(name)).filter((id) => id >= 0));
    const bitsOf = memoised((set) =>
      idRules.reduce((bits, any, at) => (any.some((id) => sets.has(set, id)) ? bits + 2 ** at : bits), 0),
    );
    parts.push({ bitsOf, all: 2 ** part.length - 1 });
  }
  return parts;
}
