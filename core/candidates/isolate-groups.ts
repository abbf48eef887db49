import { fitsNow, type GroupCounts, type GroupPlacement } from "./group-placement.ts";

/**
 * Every way, up to likeness, to put each numbered group on a provider of its own (`group_policy=isolate`).
 *
 * It is a transport problem: so many likes of each group, so many likes of each kind of provider. A flow decides before each
 * choice whether the rest can still be placed, so no branch ends in vain, and an impossible request is known at the root.
 */
export function* isolateGroups(placement: GroupPlacement): Generator<GroupCounts> {
  const bins = binsOf(placement);
  const groupCount = placement.counts.length;
  const fits = new Uint8Array(groupCount * bins.length);
  for (let group = 0; group < groupCount; group += 1) {
    bins.forEach((bin, index) => {
      fits[group * bins.length + index] = fitsNow(placement, group, bin[0]!) ? 1 : 0;
    });
  }
  const state: TransportState = {
    placement,
    bins,
    fits,
    left: bins.map((bin) => bin.length),
    todo: [...placement.counts],
    taken: new Int32Array(groupCount * bins.length),
  };
  if (canPlaceRest(state, 0, 0)) yield* choose(state, 0, 0);
}

interface TransportState {
  readonly placement: GroupPlacement;
  /** Providers that are alike, the touched ones each alone. */
  readonly bins: readonly (readonly number[])[];
  readonly fits: Uint8Array;
  /** Free providers by bin. */
  readonly left: number[];
  /** Likes still to place, by group. */
  readonly todo: number[];
  readonly taken: Int32Array;
}

function* choose(state: TransportState, group: number, bin: number): Generator<GroupCounts> {
  if (!state.placement.budget.step()) return;
  if (group === state.todo.length) {
    yield countsOf(state);
    return;
  }
  if (bin === state.bins.length) {
    yield* choose(state, group + 1, 0);
    return;
  }
  const at = group * state.bins.length + bin;
  const most = state.fits[at] === 1 ? Math.min(state.todo[group]!, state.left[bin]!) : 0;
  for (let times = most; times >= 0; times -= 1) {
    state.todo[group] = state.todo[group]! - times;
    state.left[bin] = state.left[bin]! - times;
    state.taken[at] = times;
    if (canPlaceRest(state, group, bin + 1)) yield* choose(state, group, bin + 1);
    state.todo[group] = state.todo[group]! + times;
    state.left[bin] = state.left[bin]! + times;
    state.taken[at] = 0;
  }
}

/** Whether the likes still to place find providers: `group` in the bins from `firstBin` on, the later groups in all. */
function canPlaceRest(state: TransportState, group: number, firstBin: number): boolean {
  const binCount = state.bins.length;
  const left = [...state.left];
  const flow = new Int32Array(state.todo.length * binCount);
  const allowed = (g: number, bin: number) => state.fits[g * binCount + bin] === 1 && (g !== group || bin >= firstBin);
  /** Finds room for one like of `from`, moving others aside if need be. */
  const augment = (from: number, visited: Uint8Array): boolean => {
    for (let bin = 0; bin < binCount; bin += 1) {
      if (visited[bin] === 1 || !allowed(from, bin)) continue;
      visited[bin] = 1;
      if (left[bin]! > 0) {
        left[bin] = left[bin]! - 1;
        flow[from * binCount + bin] = flow[from * binCount + bin]! + 1;
        return true;
      }
      for (let other = group; other < state.todo.length; other += 1) {
        if (flow[other * binCount + bin] === 0 || other === from) continue;
        if (!augment(other, visited)) continue;
        flow[other * binCount + bin] = flow[other * binCount + bin]! - 1;
        flow[from * binCount + bin] = flow[from * binCount + bin]! + 1;
        return true;
      }
    }
    return false;
  };
  for (let g = group; g < state.todo.length; g += 1) {
    for (let times = 0; times < state.todo[g]!; times += 1) if (!augment(g, new Uint8Array(binCount))) return false;
  }
  return true;
}

function binsOf({ kinds, touched }: GroupPlacement): number[][] {
  const bins: number[][] = [];
  let kindOfLast = -1;
  for (let provider = 0; provider < kinds.slots.length; provider += 1) {
    if (touched[provider]) continue;
    if (kinds.kind[provider] === kindOfLast) bins.at(-1)!.push(provider);
    else bins.push([provider]);
    kindOfLast = kinds.kind[provider]!;
  }
  kinds.slots.forEach((_, provider) => {
    if (touched[provider]) bins.push([provider]);
  });
  return bins;
}

/** Likes of a bin in order: first those that take group 0, then group 1, … */
function countsOf(state: TransportState): GroupCounts {
  const groupCount = state.todo.length;
  const counts = new Int32Array(state.placement.kinds.slots.length * groupCount);
  state.bins.forEach((bin, index) => {
    let next = 0;
    for (let group = 0; group < groupCount; group += 1) {
      for (let times = state.taken[group * state.bins.length + index]!; times > 0; times -= 1) {
        counts[bin[next]! * groupCount + group] = 1;
        next += 1;
      }
    }
  });
  return counts;
}
