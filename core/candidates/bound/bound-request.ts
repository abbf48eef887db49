import { assert } from "../../assert.ts";
import type { AggregateUuid, ResourceClass, Trait } from "../../ledger/ids.ts";
import { InventoryColumn } from "../../ledger/inventory-column.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { NamedSets } from "../../ledger/named-sets.ts";
import type { Refusal, RefusalCount } from "../refusal.ts";
import {
  type CandidateRequest,
  type GroupRules,
  type RequestGroup,
  type RootRules,
  requiredRules,
} from "../request.ts";
import { type RequestedAmount, requestAmount } from "./requested-amount.ts";

/** An amount whose lack is counted among the reasons of a refusal. */
export interface CountedAmount extends RequestedAmount {
  /** Refusal code that is counted when no provider of a tree has this amount. */
  readonly lackCode: number;
}

/** One request group, or several that ask for the same thing. These are its members, and they are interchangeable. */
export interface BoundGroup {
  readonly suffixes: readonly string[];
  readonly amounts: readonly CountedAmount[];
  /** By amount of the unnumbered group: the index of an earlier amount that the same provider must serve, or -1. Null when none has such a partner. */
  readonly partners: readonly number[] | null;
  /** The only amount of the group, when the group asks a provider for nothing but room for it and traits; otherwise null. */
  readonly plain: CountedAmount | null;
  /** By trait-set number: 1 if a provider with that set may serve the group (a numbered group: on its own). Null when any provider may. */
  readonly traitsServe: Uint8Array | null;
  /** Unnumbered group: lists of trait ids. The chosen providers together must have at least one trait of each list. */
  readonly togetherTraits: readonly (readonly number[])[];
  /** By trait-set number: 1 if one provider with that set has all of `togetherTraits`. Null when nothing is required together. */
  readonly togetherSets: Uint8Array | null;
  /**
   * By aggregate-set number. For the unnumbered group the root may satisfy `memberSets` too, and the root must satisfy `outsideSets` as
   * well.
   */
  readonly memberSets: Uint8Array | null;
  readonly outsideSets: Uint8Array | null;
  /** Slot of the root of the only permitted tree, or ANY_ROOT, or NO_ROOT. */
  readonly treeRoot: number;
  readonly traitCode: number;
  readonly aggregateCode: number;
  readonly treeCode: number;
}

/** Up to three amounts for which free room alone decides. The first one fills the places of those that are not requested. */
export interface RootAmounts {
  readonly first: RequestedAmount;
  readonly second: RequestedAmount;
  readonly third: RequestedAmount;
}

const ROOT_AMOUNTS_MAX = 3;

/** Conditions on a tree's root, by set number: 1 if a root with that set will do. A field is null when it demands nothing. */
export interface BoundRoot {
  readonly traitSets: Uint8Array | null;
  readonly aggregateSets: Uint8Array | null;
}

/** Special values of BoundGroup.treeRoot: ANY_ROOT permits any tree, NO_ROOT means that this view does not have the requested tree. */
export const ANY_ROOT = -1;
export const NO_ROOT = -2;

export const CODE_NO_HOST = 0;
export const CODE_HOST_DOWN = 1;
export const CODE_HOST_DISABLED = 2;
export const CODE_HOST_EXCLUDED = 3;
export const CODE_NO_COMBINATION = 4;
export const CODE_GAVE_UP = 5;
export const CODE_OTHER_HOST = 6;
export const CODE_ROOT_TRAITS = 7;
export const CODE_ROOT_AGGREGATES = 8;
export const CODE_OUT_OF_STEPS = 9;
export const CODE_OUT_OF_TIME = 10;
const FIXED_REFUSALS: readonly Refusal[] = [
  { kind: "no-host" },
  { kind: "host-down" },
  { kind: "host-disabled" },
  { kind: "host-excluded" },
  { kind: "no-combination" },
  { kind: "gave-up" },
  { kind: "other-host" },
  { kind: "traits", suffix: "" },
  { kind: "aggregates", suffix: "" },
  { kind: "not-searched", limit: "steps" },
  { kind: "not-searched", limit: "time" },
];

/** A request bound to the current state of a view: names became ids, and classes became columns. It is valid until the view changes. */
export class BoundRequest {
  readonly view: LedgerView;
  readonly request: CandidateRequest;
  readonly unnumbered: BoundGroup | null;
  readonly numbered: readonly BoundGroup[];
  readonly isolate: boolean;
  /** Every requested class, once. */
  readonly classes: readonly RequestedAmount[];
  readonly excludedRoots: ReadonlySet<number>;
  /** Null when any root is permitted. */
  readonly onlyRoots: ReadonlySet<number> | null;
  readonly root: BoundRoot;
  /** The amounts of the unnumbered group when room on the root proves that it serves the group; otherwise, or when they are many, null. */
  readonly rootAmounts: RootAmounts | null;
  /** Number of refused trees, by refusal code. */
  readonly refused: Int32Array;
  readonly #refusals: Refusal[] = [...FIXED_REFUSALS];

  constructor(view: LedgerView, request: CandidateRequest) {
    this.view = view;
    this.request = request;
    this.isolate = request.groupPolicy === "isolate";
    this.excludedRoots = this.#rootsOf(request.trees.excludedHosts);
    this.onlyRoots = request.trees.onlyHosts ? this.#rootsOf(request.trees.onlyHosts) : null;
    this.root = bindRoot(view, request.rootRules);
    const unnumbered = request.groups.find((group) => group.suffix === "");
    this.unnumbered = unnumbered ? this.#bindGroup([unnumbered]) : null;
    this.numbered = gatherInterchangeable(request.groups, request).map((groups) => this.#bindGroup(groups));
    this.rootAmounts = this.unnumbered ? rootAmountsOf(this.unnumbered) : null;
    const byClass = new Map<ResourceClass, RequestedAmount>();
    for (const group of [...(this.unnumbered ? [this.unnumbered] : []), ...this.numbered]) {
      for (const requested of group.amounts) byClass.set(requested.resourceClass, requested);
    }
    this.classes = [...byClass.values()];
    this.refused = new Int32Array(this.#refusals.length);
  }

  /** Counts a refusal. It returns false, so that a check can end with it. */
  refuse(code: number): false {
    this.refused[code] = this.refused[code]! + 1;
    return false;
  }

  refusals(): RefusalCount[] {
    return this.#refusals
      .map((refusal, code) => ({ refusal, trees: this.refused[code]! }))
      .filter((count) => count.trees > 0);
  }

  #bindGroup(groups: readonly RequestGroup[]): BoundGroup {
    const [group] = groups;
    assert(group !== undefined, "there are no groups of nothing");
    assert(group.resources.size > 0 || group.suffix !== "", "the unnumbered group asks for resources");
    const { traits, aggregates } = this.view;
    const requiredIds = requiredRules(group).map((names) => names.map((name) => traits.idOf(name)));
    const forbiddenIds = [...group.forbiddenTraits].map((name) => traits.idOf(name));
    const alone = group.suffix !== "";
    const amounts = [...group.resources].map(([resourceClass, amount]) =>
      this.#bindAmount(group, resourceClass, amount),
    );
    const inAggregates = group.memberOf.length > 0 || group.forbiddenAggregates.size > 0;
    return {
      suffixes: groups.map((one) => one.suffix),
      amounts,
      partners: group.oneProvider === undefined ? null : partnersOf(amounts, group.oneProvider),
      plain: amounts.length === 1 && amounts[0]!.roomDecides && !inAggregates ? amounts[0]! : null,
      traitsServe:
        forbiddenIds.length > 0 || (alone && requiredIds.length > 0)
          ? servingSets(traits, alone ? requiredIds : [], forbiddenIds)
          : null,
      togetherTraits: alone ? [] : requiredIds,
      togetherSets: alone || requiredIds.length === 0 ? null : servingSets(traits, requiredIds, []),
      memberSets:
        group.memberOf.length > 0
          ? servingSets(
              aggregates,
              group.memberOf.map((set) => idsOf(aggregates, set)),
              [],
            )
          : null,
      outsideSets:
        group.forbiddenAggregates.size > 0
          ? servingSets(aggregates, [], idsOf(aggregates, group.forbiddenAggregates))
          : null,
      treeRoot: this.#treeRoot(group),
      traitCode: this.#code({ kind: "traits", suffix: group.suffix }),
      aggregateCode: this.#code({ kind: "aggregates", suffix: group.suffix }),
      treeCode: this.#code({ kind: "other-tree", suffix: group.suffix }),
    };
  }

  #bindAmount(group: RequestGroup, resourceClass: ResourceClass, amount: number): CountedAmount {
    const column = this.view.column(resourceClass) ?? new InventoryColumn(this.view.slots.capacity);
    const lackCode = this.#code({ kind: "lacks", suffix: group.suffix, resourceClass, amount });
    return { ...requestAmount(resourceClass, amount, column), lackCode };
  }

  #rootsOf(hosts: ReadonlySet<string>): Set<number> {
    return new Set([...hosts].map((host) => this.view.hosts.slotOf(host)).filter((slot) => slot >= 0));
  }

  #treeRoot(group: RequestGroup): number {
    if (group.inTree === null) return ANY_ROOT;
    const slot = this.view.slots.find(group.inTree);
    return slot < 0 ? NO_ROOT : this.view.slots.root[slot]!;
  }

  #code(refusal: Refusal): number {
    return this.#refusals.push(refusal) - 1;
  }
}

function partnersOf(amounts: readonly RequestedAmount[], oneProvider: readonly ResourceClass[]): readonly number[] {
  const first = amounts.findIndex(({ resourceClass }) => oneProvider.includes(resourceClass));
  return amounts.map(({ resourceClass }, index) => (index > first && oneProvider.includes(resourceClass) ? first : -1));
}

function rootAmountsOf(group: BoundGroup): RootAmounts | null {
  const { amounts, treeRoot } = group;
  const [first, second, third] = amounts;
  const isPicky = isConstrained(group) || group.togetherSets !== null || treeRoot !== ANY_ROOT;
  if (!first || amounts.length > ROOT_AMOUNTS_MAX || isPicky) return null;
  return amounts.every(({ roomDecides }) => roomDecides)
    ? { first, second: second ?? first, third: third ?? first }
    : null;
}

/** Whether the group has conditions on a provider other than room. */
export function isConstrained(group: BoundGroup): boolean {
  return group.traitsServe !== null || group.memberSets !== null || group.outsideSets !== null;
}

/** Whether a provider meets the conditions of a numbered group, apart from room. */
export function mayServeNumbered(view: LedgerView, group: BoundGroup, slot: number): boolean {
  const { slots } = view;
  if (group.traitsServe !== null && group.traitsServe[slots.traitSet[slot]!] === 0) return false;
  if (group.memberSets !== null && group.memberSets[slots.aggregateSet[slot]!] === 0) return false;
  return group.outsideSets === null || group.outsideSets[slots.aggregateSet[slot]!] === 1;
}

/** Whether a provider may serve a part of the unnumbered group, apart from room and required traits. */
export function mayServeUnnumbered(view: LedgerView, group: BoundGroup, slot: number): boolean {
  const { slots } = view;
  if (group.traitsServe !== null && group.traitsServe[slots.traitSet[slot]!] === 0) return false;
  const own = slots.aggregateSet[slot]!;
  const roots = slots.aggregateSet[slots.root[slot]!]!;
  if (group.memberSets !== null && group.memberSets[own] === 0 && group.memberSets[roots] === 0) return false;
  return group.outsideSets === null || (group.outsideSets[own] === 1 && group.outsideSets[roots] === 1);
}

/** Whether providers with these trait sets together have the traits that the unnumbered group requires. */
export function haveTogether(view: LedgerView, group: BoundGroup, traitSets: readonly number[]): boolean {
  return group.togetherTraits.every((anyOf) =>
    anyOf.some((id) => id >= 0 && traitSets.some((set) => view.traits.has(set, id))),
  );
}

/** By set number: 1 where the set has at least one name of each list in `anyOf` and no name of `noneOf`. */
function servingSets<Name extends string>(
  sets: Readonly<NamedSets<Name>>,
  anyOf: readonly (readonly number[])[],
  noneOf: readonly number[],
): Uint8Array {
  const serves = new Uint8Array(sets.count);
  for (let set = 0; set < serves.length; set += 1) {
    const has = (id: number) => id >= 0 && sets.has(set, id);
    serves[set] = anyOf.every((ids) => ids.some(has)) && !noneOf.some(has) ? 1 : 0;
  }
  return serves;
}

function idsOf<Name extends Trait | AggregateUuid>(
  sets: Readonly<NamedSets<Name>>,
  names: ReadonlySet<Name>,
): number[] {
  return [...names].map((name) => sets.idOf(name));
}

/** A rule about names that no provider has ever had is dropped, so that it does not cost a pass over the hosts. */
function bindRoot({ traits, aggregates }: LedgerView, rules: RootRules | undefined): BoundRoot {
  if (!rules) return { traitSets: null, aggregateSets: null };
  const required = [...rules.requiredTraits].map((name) => [traits.idOf(name)]);
  const forbidden = [...rules.forbiddenTraits].map((name) => traits.idOf(name)).filter((id) => id >= 0);
  const memberOf = rules.memberOf.map((set) => idsOf(aggregates, set));
  const outside = idsOf(aggregates, rules.forbiddenAggregates).filter((id) => id >= 0);
  return {
    traitSets: required.length + forbidden.length > 0 ? servingSets(traits, required, forbidden) : null,
    aggregateSets: memberOf.length + outside.length > 0 ? servingSets(aggregates, memberOf, outside) : null,
  };
}

const interchangeable = new WeakMap<readonly RequestGroup[], RequestGroup[][]>();

/**
 * Gathers numbered groups that ask for the same, in the order of their first member. The result is remembered, since one request is searched
 * for many times.
 */
function gatherInterchangeable(groups: readonly RequestGroup[], rules: GroupRules): RequestGroup[][] {
  // The same list of groups always comes with the same rules, or with none.
  const known = interchangeable.get(groups);
  if (known) return known;
  const byKey = new Map<string, RequestGroup[]>();
  for (const group of groups) {
    if (group.suffix === "") continue;
    const key = interchangeableKey(group, rules);
    const same = byKey.get(key);
    if (same) same.push(group);
    else byKey.set(key, [group]);
  }
  const gathered = [...byKey.values()];
  interchangeable.set(groups, gathered);
  return gathered;
}

function interchangeableKey(group: RequestGroup, rules: GroupRules): string {
  const sets = (of: readonly ReadonlySet<string>[]) => of.map((set) => [...set].sort().join()).sort();
  return JSON.stringify([
    [...group.resources].sort(([a], [b]) => (a < b ? -1 : 1)),
    [...group.requiredTraits].sort(),
    sets(group.requiredAny),
    [...group.forbiddenTraits].sort(),
    sets(group.memberOf),
    [...group.forbiddenAggregates].sort(),
    group.inTree,
    [...listsOf(group, rules.sameSubtree), "", ...listsOf(group, rules.apart)],
  ]);
}

/** Indexes of the lists that name the group. Groups that ask for the same stay interchangeable only if the same lists name them. */
function listsOf({ suffix }: RequestGroup, lists: readonly (readonly string[])[] = []): number[] {
  return lists.flatMap((suffixes, index) => (suffixes.includes(suffix) ? [index] : []));
}
