import { type CompiledRequest, hasRoom, mayServeNumbered, mayServeUnnumbered } from "./compiled-request.ts";
import { hasGroupRules } from "./group-rules.ts";

/**
 * The providers of one tree that can serve some part of a request, like ones next to each other. Two are alike when nothing
 * that a request can name tells them apart: parent, traits, aggregates, and for the classes asked for room and units.
 * Tight kinds come first, so that what the search finds first leaves the roomiest providers whole.
 */
export interface ProviderKinds {
  readonly slots: readonly number[];
  /** By provider: the number of its kind; they are ascending. */
  readonly kind: readonly number[];
  /** Room by provider and class of the request: what is free, at most max_unit. Row by row. */
  readonly room: Float64Array;
  /** By group and provider: 1 if the provider alone could serve one of these like groups. Row by row. */
  readonly groupFits: Uint8Array;
  /** By class of the unnumbered group and provider: 1 if the provider could serve it. Row by row. */
  readonly demandFits: Uint8Array;
}

/** Cost: (providers of the tree) × (classes + groups + kinds). */
export function providerKinds(request: CompiledRequest, root: number): ProviderKinds {
  const { view, classes, unnumbered, numbered } = request;
  const tree = [root, ...view.slots.descendants(root)];
  const usable = tree.filter(
    (slot) =>
      unnumbered?.demands.some((demand) => hasRoom(demand, slot) && mayServeUnnumbered(view, unnumbered, slot)) ||
      numbered.some(
        (group) => group.demands.every((demand) => hasRoom(demand, slot)) && mayServeNumbered(view, group, slot),
      ),
  );
  const kinds = usable.length === 1 ? [usable] : sortTightFirst(request, gatherLike(request, usable));
  const slots = kinds.flat();
  const kind = kinds.flatMap((like, number) => like.map(() => number));

  const room = new Float64Array(slots.length * classes.length);
  slots.forEach((slot, provider) => {
    classes.forEach(({ column }, index) => {
      room[provider * classes.length + index] = Math.max(0, Math.min(column.free[slot]!, column.maxUnit[slot]!));
    });
  });
  const demands = unnumbered?.demands ?? [];
  const demandFits = new Uint8Array(demands.length * slots.length);
  demands.forEach((demand, index) => {
    slots.forEach((slot, provider) => {
      const fits = hasRoom(demand, slot) && mayServeUnnumbered(view, unnumbered!, slot);
      demandFits[index * slots.length + provider] = fits ? 1 : 0;
    });
  });
  const groupFits = new Uint8Array(numbered.length * slots.length);
  numbered.forEach((group, index) => {
    slots.forEach((slot, provider) => {
      const fits = group.demands.every((demand) => hasRoom(demand, slot)) && mayServeNumbered(view, group, slot);
      groupFits[index * slots.length + provider] = fits ? 1 : 0;
    });
  });
  return { slots, kind, room, groupFits, demandFits };
}

function gatherLike(request: CompiledRequest, slots: readonly number[]): number[][] {
  const kinds: number[][] = [];
  for (const slot of slots) {
    const like = kinds.find((kind) => areAlike(request, kind[0]!, slot));
    if (like) like.push(slot);
    else kinds.push([slot]);
  }
  return kinds;
}

function areAlike(request: CompiledRequest, a: number, b: number): boolean {
  const { slots } = request.view;
  if (slots.parent[a] !== slots.parent[b] || slots.traitSet[a] !== slots.traitSet[b]) return false;
  if (slots.aggregateSet[a] !== slots.aggregateSet[b]) return false;
  // Rules between groups tell apart what is above something from what is above nothing, or above something else.
  if (hasGroupRules(request.request) && (isAbove(request, a) || isAbove(request, b))) return false;
  return request.classes.every(
    ({ column }) =>
      column.free[a]! === column.free[b]! &&
      column.maxUnit[a] === column.maxUnit[b] &&
      column.minUnit[a] === column.minUnit[b] &&
      column.stepSize[a] === column.stepSize[b],
  );
}

function isAbove({ view: { slots } }: CompiledRequest, slot: number): boolean {
  return slots.descendants(slots.root[slot]!).some((other) => slots.parent[other] === slot);
}

function sortTightFirst(request: CompiledRequest, kinds: number[][]): number[][] {
  const roomOf = (slot: number) =>
    request.classes.reduce((sum, { column }) => sum + Math.max(0, column.free[slot]!), 0);
  return kinds
    .map((like) => ({ like, room: roomOf(like[0]!) }))
    .sort((a, b) => a.room - b.room)
    .map(({ like }) => like);
}
