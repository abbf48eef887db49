import type { BoundRequest } from "../../candidates/bound/bound-request.ts";
import type { RequestedAmount } from "../../candidates/bound/requested-amount.ts";

/** Maximum that is counted. Room for more such requests does not make it more certain that one will fit later. */
const HEADROOM_MAX = 4;

/** A requested amount with the number of equivalent groups that have it. */
interface WholeAmount {
  readonly requested: RequestedAmount;
  /** Number of groups that request the amount. */
  readonly groups: number;
  /** Sum of the amounts that all groups of the request take of the class. */
  readonly ofClass: number;
}

const known = new WeakMap<BoundRequest, (root: number) => number>();

/**
 * Estimates for each host how many such requests would fit there, up to four. It considers amounts only and ignores traits and rules
 * between groups. The more would fit, the likelier the request still fits after other servers were placed there.
 *
 * Cost: a few operations for each provider of the host's tree and requested class, and fewer where there is plenty. It allocates nothing
 * per host.
 */
export function headroomOf(request: BoundRequest): (root: number) => number {
  let headroomOn = known.get(request);
  if (!headroomOn) {
    headroomOn = headroomOnTrees(request);
    known.set(request, headroomOn);
  }
  return headroomOn;
}

function headroomOnTrees(request: BoundRequest): (root: number) => number {
  const amounts = wholeAmounts(request);
  return (root) => {
    const descendants = request.view.slots.descendants(root);
    let headroom = HEADROOM_MAX;
    for (const requested of amounts) headroom = headroomFor(requested, root, descendants, headroom);
    return headroom;
  };
}

/** How often the requested amount fits, up to `most`. It stops reading the tree once that is reached. */
function headroomFor(
  { requested, groups, ofClass }: WholeAmount,
  root: number,
  descendants: readonly number[],
  most: number,
): number {
  const { amount } = requested;
  const { free } = requested.column;
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

function wholeAmounts({ unnumbered, numbered }: BoundRequest): WholeAmount[] {
  const groups = unnumbered ? [unnumbered, ...numbered] : numbered;
  const all = groups.flatMap(({ amounts, suffixes }) =>
    amounts.map((requested) => ({ requested, groups: suffixes.length })),
  );
  const ofClass = new Map<string, number>();
  for (const { requested, groups: count } of all) {
    const { resourceClass, amount } = requested;
    ofClass.set(resourceClass, (ofClass.get(resourceClass) ?? 0) + amount * count);
  }
  return all.map((one) => ({ ...one, ofClass: ofClass.get(one.requested.resourceClass) ?? 0 }));
}
