import type { BoundGroup, BoundRequest } from "../../candidates/bound/bound-request.ts";
import { hasRoom, type RequestedAmount } from "../../candidates/bound/requested-amount.ts";
import type { ResourceClass } from "../../ledger/ids.ts";

/** A shortage of one class in a host's providers. */
export interface Lack {
  /** Suffix of the request group, "" for the unnumbered one. */
  readonly suffix: string;
  readonly resourceClass: ResourceClass;
  readonly requested: number;
  /** The free amount of the provider that has most of it; for several equivalent groups, of all providers together. */
  readonly free: number;
  /** Name of that provider, or null when no provider has the class. */
  readonly provider: string | null;
}

/**
 * The resources of which a tree has too little, apart from traits and aggregates. The list is empty when the tree does not fail for lack of
 * room.
 */
export function lacksOf(request: BoundRequest, root: number): Lack[] {
  const providers = [root, ...request.view.slots.descendants(root)];
  const groups = request.unnumbered ? [request.unnumbered, ...request.numbered] : request.numbered;
  return groups.flatMap((group) =>
    group.amounts.flatMap((requested) => lackOf(request, group, requested, providers) ?? []),
  );
}

/**
 * How far a tree is from having enough: the sum, over the classes it lacks, of the missing part of the requested amount. Cost: that of the
 * scan.
 */
export function shortageOf(request: BoundRequest, root: number): number {
  const descendants = request.view.slots.descendants(root);
  const groups = request.unnumbered ? [request.unnumbered, ...request.numbered] : request.numbered;
  let shortage = 0;
  for (const { amounts } of groups) {
    for (const { column, amount } of amounts) {
      let most = column.free[root]!;
      for (const slot of descendants) if (column.free[slot]! > most) most = column.free[slot]!;
      if (most < amount) shortage += (amount - Math.max(0, most)) / amount;
    }
  }
  return shortage;
}

function lackOf(
  { view, isolate }: BoundRequest,
  { suffixes }: BoundGroup,
  requested: RequestedAmount,
  providers: readonly number[],
): Lack | null {
  const { column, amount, resourceClass } = requested;
  const having = providers.filter((slot) => column.has(slot));
  const placesAt = (slot: number) => (isolate ? 1 : Math.floor(column.free[slot]! / amount));
  const places = having.reduce((sum, slot) => sum + (hasRoom(requested, slot) ? placesAt(slot) : 0), 0);
  if (places >= suffixes.length) return null;
  const freeAt = (slot: number) => Math.max(0, column.free[slot]!);
  const best = having.toSorted((a, b) => freeAt(b) - freeAt(a))[0];
  const all = having.reduce((sum, slot) => sum + freeAt(slot), 0);
  return {
    suffix: suffixes[0] ?? "",
    resourceClass,
    requested: amount * suffixes.length,
    free: best === undefined ? 0 : suffixes.length === 1 ? freeAt(best) : all,
    provider: best === undefined ? null : view.slots.nameOf(best),
  };
}
