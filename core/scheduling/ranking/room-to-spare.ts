import type { CompiledRequest, Demand } from "../../candidates/bound/compiled-request.ts";

/** Maximum that is counted. Room for more such requests does not make it more certain that one will fit later. */
const ROOM_MAX = 4;

/** A demand with the number of equivalent groups that have it. */
interface WholeDemand {
  readonly demand: Demand;
  /** Number of groups that have the demand. */
  readonly groups: number;
  /** Amount of its class that all groups of the request take together. */
  readonly ofClass: number;
}

const known = new WeakMap<CompiledRequest, (root: number) => number>();

/**
 * Estimates for each host how many such requests would fit there, up to four. It considers amounts only and ignores traits and rules
 * between groups. The more would fit, the likelier the request still fits after other servers were placed there.
 *
 * Cost: a few operations for each provider of the host's tree and requested class, and fewer where there is plenty. It allocates nothing
 * per host.
 */
export function roomToSpare(request: CompiledRequest): (root: number) => number {
  let roomOn = known.get(request);
  if (!roomOn) {
    roomOn = roomOnTrees(request);
    known.set(request, roomOn);
  }
  return roomOn;
}

function roomOnTrees(request: CompiledRequest): (root: number) => number {
  const demands = wholeDemands(request);
  return (root) => {
    const descendants = request.view.slots.descendants(root);
    let room = ROOM_MAX;
    for (const demand of demands) room = roomFor(demand, root, descendants, room);
    return room;
  };
}

/** How often the demand fits, up to `most`. It stops reading the tree once that is reached. */
function roomFor(
  { demand, groups, ofClass }: WholeDemand,
  root: number,
  descendants: readonly number[],
  most: number,
): number {
  const { amount } = demand;
  const { free } = demand.column;
  let left = Math.max(0, free[root]!);
  let sum = left;
  let places = Math.floor(left / amount);
  for (const slot of descendants) {
    if (places >= most * groups && sum >= most * ofClass) return most;
    left = free[slot]!;
    if (left <= 0) continue;
    sum += left;
    places += Math.floor(left / amount);
  }
  return Math.min(most, Math.floor(places / groups), Math.floor(sum / ofClass));
}

function wholeDemands({ unnumbered, numbered }: CompiledRequest): WholeDemand[] {
  const groups = unnumbered ? [unnumbered, ...numbered] : numbered;
  const all = groups.flatMap(({ demands, suffixes }) => demands.map((demand) => ({ demand, groups: suffixes.length })));
  const ofClass = new Map<string, number>();
  for (const { demand, groups: count } of all) {
    const { resourceClass, amount } = demand;
    ofClass.set(resourceClass, (ofClass.get(resourceClass) ?? 0) + amount * count);
  }
  return all.map((one) => ({ ...one, ofClass: ofClass.get(one.demand.resourceClass) ?? 0 }));
}
