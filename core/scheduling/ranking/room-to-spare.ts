import type { CompiledRequest, Demand } from "../../candidates/compiled-request.ts";

/** More room than for so many such requests tells nothing more of whether there will be room for one. */
const ROOM_MAX = 4;

/** One demand as all its like groups make it together. */
interface WholeDemand {
  readonly demand: Demand;
  /** Groups that each make it. */
  readonly groups: number;
  /** Of its class, by all groups of the request. */
  readonly ofClass: number;
}

const known = new WeakMap<CompiledRequest, (root: number) => number>();

/**
 * Tells of each host how often the request would fit there, up to four times, as far as amounts alone show, traits and rules between
 * groups aside: the more often, the likelier it still fits once after others were placed there.
 *
 * Cost: a few operations for each provider of the host's tree and class asked for, fewer where there is plenty; no allocation per host.
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

/** At most so many times: once that is reached, the rest of the tree is not looked at. */
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
  for (const { demand, groups: likes } of all) {
    const { resourceClass, amount } = demand;
    ofClass.set(resourceClass, (ofClass.get(resourceClass) ?? 0) + amount * likes);
  }
  return all.map((one) => ({ ...one, ofClass: ofClass.get(one.demand.resourceClass) ?? 0 }));
}
