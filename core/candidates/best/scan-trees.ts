import { HOST, HOST_DISABLED, HOST_OPEN } from "../../ledger/view-hosts.ts";
import {
  ANY_ROOT,
  type BoundGroup,
  type BoundRequest,
  CODE_HOST_DISABLED,
  CODE_HOST_DOWN,
  CODE_HOST_EXCLUDED,
  CODE_NO_COMBINATION,
  CODE_NO_HOST,
  CODE_OTHER_HOST,
  CODE_ROOT_AGGREGATES,
  CODE_ROOT_TRAITS,
  type CountedAmount,
  haveTogether,
  isConstrained,
  mayServeNumbered,
  mayServeUnnumbered,
} from "../bound/bound-request.ts";
import { hasRoom, type RequestedAmount } from "../bound/requested-amount.ts";

/**
 * Scans the trees `from` (inclusive) to `to` (exclusive) of the view's dense list of roots. It writes the root slots of trees that may
 * serve the request to `out`, and counts the first reason for each other tree. A tree that remains may still fail later, when groups fit by
 * themselves but not together. For flat trees without numbered groups the result is exact.
 *
 * Cost: a few nanoseconds per tree when roots alone decide, some tens when descendants must be read. It allocates nothing.
 */
export function scanTrees(request: BoundRequest, from: number, to: number, out: Int32Array): number {
  return scanRoots(request, request.view.slots.roots, { from, to }, out);
}

/** Like `scanTrees` for a part of any list of roots. `out` may be the same array. */
export function scanRoots(
  request: BoundRequest,
  roots: Int32Array,
  { from, to }: { readonly from: number; readonly to: number },
  out: Int32Array,
): number {
  let count = keepByHost(request, roots, { from, to }, out);
  if (request.excludedRoots.size > 0) {
    count = keepIf(out, count, (root) => !request.excludedRoots.has(root) || request.refuse(CODE_HOST_EXCLUDED));
  }
  const { traitSets, aggregateSets } = request.root;
  const { traitSet, aggregateSet } = request.view.slots;
  if (traitSets !== null) {
    count = keepIf(out, count, (root) => traitSets[traitSet[root]!] === 1 || request.refuse(CODE_ROOT_TRAITS));
  }
  if (aggregateSets !== null) {
    count = keepIf(
      out,
      count,
      (root) => aggregateSets[aggregateSet[root]!] === 1 || request.refuse(CODE_ROOT_AGGREGATES),
    );
  }
  for (const group of request.numbered) {
    const constrained = isConstrained(group);
    if (group.treeRoot !== ANY_ROOT) count = keepIf(out, count, (root) => isInTree(request, group, root));
    count = keepIf(out, count, (root) => holdsGroup(request, group, root, constrained));
  }
  return count;
}

/** Keeps the named hosts, at the cost of a set lookup for each root, and then applies the checks of `keepByRoot`. */
function keepByHost(
  request: BoundRequest,
  roots: Int32Array,
  { from, to }: { readonly from: number; readonly to: number },
  out: Int32Array,
): number {
  const { onlyRoots } = request;
  if (onlyRoots === null) return keepByRoot(request, roots, { from, to }, out);
  let named = 0;
  for (let index = from; index < to; index += 1) {
    const root = roots[index]!;
    if (!onlyRoots.has(root)) {
      request.refuse(CODE_OTHER_HOST);
      continue;
    }
    out[named] = root;
    named += 1;
  }
  return keepByRoot(request, out, { from: 0, to: named }, out);
}

/**
 * Checks hosts and the unnumbered group in one pass. The loop itself compares the first classes with the root alone, which is the whole
 * search for flat hosts. It asks `servesUnnumbered` about whatever it cannot decide.
 */
function keepByRoot(
  request: BoundRequest,
  roots: Int32Array,
  { from, to }: { readonly from: number; readonly to: number },
  out: Int32Array,
): number {
  const { state } = request.view.hosts;
  const { unnumbered, rootAmounts } = request;
  const openOnly = request.request.trees.openHostsOnly;
  if (rootAmounts === null) {
    let kept = 0;
    for (let index = from; index < to; index += 1) {
      const root = roots[index]!;
      if (!isOpen(request, root, openOnly) || !servesUnnumbered(request, unnumbered, root)) continue;
      out[kept] = root;
      kept += 1;
    }
    return kept;
  }
  const { first, second, third } = rootAmounts;
  const free1 = first.column.free;
  const free2 = second.column.free;
  const free3 = third.column.free;
  const amount1 = first.amount;
  const amount2 = second.amount;
  const amount3 = third.amount;
  let kept = 0;
  for (let index = from; index < to; index += 1) {
    const root = roots[index]!;
    if (
      ((state[root] === HOST_OPEN || !openOnly) &&
        free1[root]! >= amount1 &&
        free2[root]! >= amount2 &&
        free3[root]! >= amount3) ||
      (isOpen(request, root, openOnly) && servesUnnumbered(request, unnumbered, root))
    ) {
      out[kept] = root;
      kept += 1;
    }
  }
  return kept;
}

function keepIf(out: Int32Array, count: number, keeps: (root: number) => boolean): number {
  let kept = 0;
  for (let index = 0; index < count; index += 1) {
    const root = out[index]!;
    if (!keeps(root)) continue;
    out[kept] = root;
    kept += 1;
  }
  return kept;
}

/** Whether the tree's host may be used. Like the checks below, it counts its own refusal. */
function isOpen(request: BoundRequest, root: number, openOnly: boolean): boolean {
  const state = request.view.hosts.state[root]!;
  if (!openOnly || state === HOST_OPEN) return true;
  if ((state & HOST) === 0) return request.refuse(CODE_NO_HOST);
  return request.refuse((state & HOST_DISABLED) !== 0 ? CODE_HOST_DISABLED : CODE_HOST_DOWN);
}

function isInTree(request: BoundRequest, group: BoundGroup, root: number): boolean {
  return group.treeRoot === ANY_ROOT || root === group.treeRoot || request.refuse(group.treeCode);
}

/** Whether each class of the unnumbered group has a provider in the tree that could serve it, and the tree has the required traits. */
function servesUnnumbered(request: BoundRequest, group: BoundGroup | null, root: number): boolean {
  if (group === null) return true;
  if (!isInTree(request, group, root)) return false;
  const { amounts } = group;
  for (let index = 0; index < amounts.length; index += 1)
    if (!servesAmount(request, group, amounts[index]!, root)) return false;
  return hasTogether(request, group, root);
}

function servesAmount(request: BoundRequest, group: BoundGroup, requested: CountedAmount, root: number): boolean {
  const { view } = request;
  const constrained = isConstrained(group);
  if (hasRoom(requested, root) && (!constrained || mayServeUnnumbered(view, group, root))) return true;
  const descendants = view.slots.descendants(root);
  for (let index = 0; index < descendants.length; index += 1) {
    const slot = descendants[index]!;
    if (hasRoom(requested, slot) && (!constrained || mayServeUnnumbered(view, group, slot))) return true;
  }
  return request.refuse(constrained ? codeOfAmount(request, group, requested, root) : requested.lackCode);
}

/** Why no provider of the tree serves this class: either none has room, or those with room do not meet the other conditions. */
function codeOfAmount(request: BoundRequest, group: BoundGroup, requested: CountedAmount, root: number): number {
  const { slots } = request.view;
  const roomy = [root, ...slots.descendants(root)].filter((slot) => hasRoom(requested, slot));
  if (roomy.length === 0) return requested.lackCode;
  const traitsServe = group.traitsServe;
  const byTraits = traitsServe === null || roomy.some((slot) => traitsServe[slots.traitSet[slot]!] === 1);
  return byTraits ? group.aggregateCode : group.traitCode;
}

function hasTogether(request: BoundRequest, group: BoundGroup, root: number): boolean {
  if (group.togetherSets === null) return true;
  const { slots } = request.view;
  if (group.togetherSets[slots.traitSet[root]!] === 1) return true;
  const descendants = slots.descendants(root);
  const sets = descendants.length > 0 ? [root, ...descendants].map((slot) => slots.traitSet[slot]!) : [];
  return (sets.length > 0 && haveTogether(request.view, group, sets)) || request.refuse(group.traitCode);
}

/** Whether the tree has places for all of these equivalent groups, considered by themselves. */
function holdsGroup(request: BoundRequest, group: BoundGroup, root: number, constrained: boolean): boolean {
  const wanted = group.suffixes.length;
  const eachOne = request.isolate || wanted === 1;
  const places =
    eachOne && group.plain !== null
      ? plainPlaces(request, group, group.plain, root)
      : placesIn(request, group, root, constrained);
  return places >= wanted || request.refuse(codeOfGroup(request, group, root));
}

/** Counts the tree's providers with room for one member, when the group asks for one class and traits only, which is the usual case. */
function plainPlaces(
  { view }: BoundRequest,
  group: BoundGroup,
  { column, amount }: RequestedAmount,
  root: number,
): number {
  const { traitSet } = view.slots;
  const { traitsServe } = group;
  const { free } = column;
  const descendants = view.slots.descendants(root);
  let places = free[root]! >= amount && (traitsServe === null || traitsServe[traitSet[root]!] === 1) ? 1 : 0;
  for (let index = 0; index < descendants.length; index += 1) {
    const slot = descendants[index]!;
    if (free[slot]! >= amount && (traitsServe === null || traitsServe[traitSet[slot]!] === 1)) places += 1;
  }
  return places;
}

function placesIn(request: BoundRequest, group: BoundGroup, root: number, constrained: boolean): number {
  const descendants = request.view.slots.descendants(root);
  let places = placesAt(request, group, root, constrained);
  for (let index = 0; index < descendants.length; index += 1) {
    places += placesAt(request, group, descendants[index]!, constrained);
  }
  return places;
}

/** How many members of a numbered group the provider could take if nothing else were placed on it. */
function placesAt(request: BoundRequest, group: BoundGroup, slot: number, constrained: boolean): number {
  if (constrained && !mayServeNumbered(request.view, group, slot)) return 0;
  let places = request.isolate ? 1 : Number.POSITIVE_INFINITY;
  for (const requested of group.amounts) {
    if (!hasRoom(requested, slot)) return 0;
    places = Math.min(places, placesFor(requested, slot));
  }
  return places;
}

/** Amounts on one provider add up, and their sum must also stay within max_unit. */
function placesFor({ column, amount }: RequestedAmount, slot: number): number {
  return Math.floor(Math.min(column.free[slot]!, column.maxUnit[slot]!) / amount);
}

/** Returns the obstacle of the group in the tree: first missing room of a class, then missing traits where there is room, and otherwise missing aggregates. */
function codeOfGroup(request: BoundRequest, group: BoundGroup, root: number): number {
  const wanted = group.suffixes.length;
  if (group.plain !== null) {
    const lacks = group.traitsServe === null || placesIn(request, group, root, false) < wanted;
    return lacks ? group.plain.lackCode : group.traitCode;
  }
  for (const requested of group.amounts) {
    const alone = { ...group, ...NO_CONDITIONS, amounts: [requested] };
    if (placesIn(request, alone, root, false) < wanted) return requested.lackCode;
  }
  if (group.traitsServe === null) {
    return isConstrained(group) ? group.aggregateCode : (group.amounts[0]?.lackCode ?? CODE_NO_COMBINATION);
  }
  const byTraits = placesIn(request, { ...group, ...NO_CONDITIONS, traitsServe: group.traitsServe }, root, true);
  return byTraits < wanted ? group.traitCode : group.aggregateCode;
}

const NO_CONDITIONS = { traitsServe: null, memberSets: null, outsideSets: null };
