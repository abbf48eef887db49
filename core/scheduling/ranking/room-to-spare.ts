import type { CompiledRequest, Demand } from "../../candidates/compiled-request.ts";

/** So often a request has to fit for a host to have room for it later, when others took some meanwhile. */
const FITS_WANTED = 2;

/** One demand as all its like groups make it together. */
interface WholeDemand {
  readonly demand: Demand;
  /** Groups that each make it. */
  readonly groups: number;
  /** Of its class, by all groups of the request. */
  readonly ofClass: number;
}

/**
 * Tells of each host whether the request would fit there twice as far as amounts alone show, traits and rules between groups aside:
 * so it probably still fits once after others were placed there.
 *
 * Cost: a few operations for each provider of the host's tree and class asked for; no allocation per host.
 */
export function roomToSpare(request: CompiledRequest): (root: number) => boolean {
  const demands = wholeDemands(request);
  const { slots } = request.view;
  return (root) => {
    const descendants = slots.descendants(root);
    return demands.every((demand) => fitsTwice(demand, root, descendants));
  };
}

function fitsTwice({ demand, groups, ofClass }: WholeDemand, root: number, descendants: readonly number[]): boolean {
  const { amount } = demand;
  const { free } = demand.column;
  const onRoot = Math.max(0, free[root]!);
  let sum = onRoot;
  let places = Math.floor(onRoot / amount);
  for (const slot of descendants) {
    const left = Math.max(0, free[slot]!);
    sum += left;
    places += Math.floor(left / amount);
  }
  return places >= FITS_WANTED * groups && sum >= FITS_WANTED * ofClass;
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
