import { HOST, HOST_DISABLED, HOST_OPEN, HOST_UP } from "../ledger/view-hosts.ts";
import {
  CODE_HOST_DISABLED,
  CODE_HOST_DOWN,
  CODE_HOST_EXCLUDED,
  CODE_NO_HOST,
  type CompiledRequest,
  type Demand,
  type GroupDemand,
  hasRoom,
  haveTogether,
  mayServeNumbered,
  mayServeUnnumbered,
} from "./compiled-request.ts";

/**
 * Sieve the trees `from` (inclusive) to `to` (exclusive) of the view's dense list of roots: the slots of the roots that may
 * serve the request go to `out`; for the others the first reason is counted. A tree that is left may still turn out
 * unable (groups that fit each by itself, not together), except flat ones without numbered groups, for which this is exact.
 *
 * Cost: some nanoseconds a tree and class: one pass over the arrays a condition, no allocation.
 */
export function scanTrees(request: CompiledRequest, from: number, to: number, out: Int32Array): number {
  let count = keepHosts(request, from, to, out);
  const { unnumbered } = request;
  if (unnumbered) {
    count = keepTree(request, unnumbered, out, count);
    const constrained = isConstrained(unnumbered);
    for (const demand of unnumbered.demands) {
      count = keepDemand(request, { group: unnumbered, demand, constrained }, out, count);
    }
    count = keepTogether(request, unnumbered, out, count);
  }
  for (const group of request.numbered) {
    count = keepTree(request, group, out, count);
    count = keepGroup(request, group, out, count);
  }
  return count;
}

function isConstrained(group: GroupDemand): boolean {
  return group.traitsServe !== null || group.memberSets !== null || group.outsideSets !== null;
}

function keepHosts(request: CompiledRequest, from: number, to: number, out: Int32Array): number {
  const { roots } = request.view.slots;
  const { state } = request.view.hosts;
  const { excludedRoots } = request;
  const openOnly = request.request.trees.openHostsOnly;
  let kept = 0;
  for (let index = from; index < to; index += 1) {
    const root = roots[index]!;
    if (openOnly && state[root] !== HOST_OPEN) {
      request.refuse(codeOfHost(state[root]!));
    } else if (excludedRoots.size > 0 && excludedRoots.has(root)) {
      request.refuse(CODE_HOST_EXCLUDED);
    } else {
      out[kept] = root;
      kept += 1;
    }
  }
  return kept;
}

function codeOfHost(state: number): number {
  if ((state & HOST) === 0) return CODE_NO_HOST;
  if ((state & HOST_DISABLED) !== 0) return CODE_HOST_DISABLED;
  return (state & HOST_UP) === 0 ? CODE_HOST_DOWN : CODE_NO_HOST;
}

function keepTree(request: CompiledRequest, group: GroupDemand, out: Int32Array, count: number): number {
  if (group.treeRoot === -1) return count;
  let kept = 0;
  for (let index = 0; index < count; index += 1) {
    const root = out[index]!;
    if (root === group.treeRoot) {
      out[kept] = root;
      kept += 1;
    } else request.refuse(group.treeCode);
  }
  return kept;
}

interface UnnumberedDemand {
  readonly group: GroupDemand;
  readonly demand: Demand;
  /** Whether the group has conditions beside room. */
  readonly constrained: boolean;
}

/** The trees with some provider that has room for one class of the unnumbered group; the root is looked at first. */
function keepDemand(request: CompiledRequest, part: UnnumberedDemand, out: Int32Array, count: number): number {
  const { view } = request;
  const { slots } = view;
  const { demand, group, constrained } = part;
  const { amount, pending, uneven } = demand;
  const { free, maxUnit } = demand.column;
  let kept = 0;
  for (let index = 0; index < count; index += 1) {
    const root = out[index]!;
    const rootHasRoom =
      free[root]! - pending[root]! >= amount && amount <= maxUnit[root]! && (!uneven || hasRoom(demand, root));
    if (
      (rootHasRoom && (!constrained || mayServeUnnumbered(view, group, root))) ||
      descendantServes(request, part, slots.descendants(root))
    ) {
      out[kept] = root;
      kept += 1;
    } else request.refuse(constrained ? codeOfDemand(request, part, root) : demand.lackCode);
  }
  return kept;
}

function descendantServes(request: CompiledRequest, part: UnnumberedDemand, descendants: readonly number[]): boolean {
  for (let index = 0; index < descendants.length; index += 1) {
    const slot = descendants[index]!;
    if (hasRoom(part.demand, slot) && (!part.constrained || mayServeUnnumbered(request.view, part.group, slot)))
      return true;
  }
  return false;
}

/** Why no provider of the tree serves this class: none has room, or those that have don't meet the other conditions. */
function codeOfDemand(request: CompiledRequest, { group, demand }: UnnumberedDemand, root: number): number {
  const { slots } = request.view;
  const roomy = [root, ...slots.descendants(root)].filter((slot) => hasRoom(demand, slot));
  if (roomy.length === 0) return demand.lackCode;
  const traitsServe = group.traitsServe;
  const byTraits = traitsServe === null || roomy.some((slot) => traitsServe[slots.traitSet[slot]!] === 1);
  return byTraits ? group.aggregateCode : group.traitCode;
}

function keepTogether(request: CompiledRequest, group: GroupDemand, out: Int32Array, count: number): number {
  const { togetherSets } = group;
  if (togetherSets === null) return count;
  const { view } = request;
  const { slots } = view;
  let kept = 0;
  for (let index = 0; index < count; index += 1) {
    const root = out[index]!;
    const descendants = slots.descendants(root);
    const rootHasAll = togetherSets[slots.traitSet[root]!] === 1;
    if (
      rootHasAll ||
      (descendants.length > 0 &&
        haveTogether(
          view,
          group,
          [root, ...descendants].map((slot) => slots.traitSet[slot]!),
        ))
    ) {
      out[kept] = root;
      kept += 1;
    } else request.refuse(group.traitCode);
  }
  return kept;
}

/** The trees in which as many of these like groups find a place as there are, each looked at by itself. */
function keepGroup(request: CompiledRequest, group: GroupDemand, out: Int32Array, count: number): number {
  const { slots } = request.view;
  const wanted = group.suffixes.length;
  const constrained = isConstrained(group);
  let kept = 0;
  for (let index = 0; index < count; index += 1) {
    const root = out[index]!;
    const descendants = slots.descendants(root);
    let places = placesAt(request, group, root, constrained);
    for (let at = 0; at < descendants.length && places < wanted; at += 1) {
      places += placesAt(request, group, descendants[at]!, constrained);
    }
    if (places >= wanted) {
      out[kept] = root;
      kept += 1;
    } else request.refuse(codeOfGroup(request, group, root));
  }
  return kept;
}

/** How many of a numbered group's likes the provider could take, were there nothing else. */
export function placesAt(request: CompiledRequest, group: GroupDemand, slot: number, constrained: boolean): number {
  const { demands } = group;
  const first = demands[0]!;
  if (!hasRoom(first, slot)) return 0;
  if (constrained && !mayServeNumbered(request.view, group, slot)) return 0;
  let places = request.isolate ? 1 : placesFor(first, slot);
  for (let index = 1; index < demands.length; index += 1) {
    const demand = demands[index]!;
    if (!hasRoom(demand, slot)) return 0;
    if (!request.isolate) places = Math.min(places, placesFor(demand, slot));
  }
  return places;
}

/** What lands on one provider adds up, and the sum too must be within its max_unit. */
function placesFor({ column, pending, amount }: Demand, slot: number): number {
  return Math.floor(Math.min(column.free[slot]! - pending[slot]!, column.maxUnit[slot]!) / amount);
}

function codeOfGroup(request: CompiledRequest, group: GroupDemand, root: number): number {
  const { slots } = request.view;
  const wanted = group.suffixes.length;
  const tree = [root, ...slots.descendants(root)];
  for (const demand of group.demands) {
    let places = 0;
    for (const slot of tree) if (hasRoom(demand, slot)) places += request.isolate ? 1 : placesFor(demand, slot);
    if (places < wanted) return demand.lackCode;
  }
  const { traitsServe } = group;
  const allowed = traitsServe === null ? tree : tree.filter((slot) => traitsServe[slots.traitSet[slot]!] === 1);
  const places = allowed.reduce((sum, slot) => sum + placesAt(request, group, slot, false), 0);
  if (places < wanted) return traitsServe === null ? group.demands[0]!.lackCode : group.traitCode;
  return group.aggregateCode;
}
