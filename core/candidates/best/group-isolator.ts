import type { GroupCounts, GroupPlacement, GroupPlacer } from "./group-placement.ts";

/**
 * Finds every way, counting interchangeable ones once, to put each numbered group on a provider that no
 * other numbered group uses (`group_policy=isolate`).
 *
 * This is a transport problem between the members of each group and the providers of each kind. Before each choice a flow decides whether the
 * rest can still be placed. So no branch is searched in vain, and an impossible request is known at the root.
 */
export class GroupIsolator implements GroupPlacer {
  counts: GroupCounts = new Int32Array(0);
  readonly #placement: GroupPlacement;
  readonly #groupCount: number;
  readonly #bins: ProviderBins;
  /** By group: members that are still to be placed. */
  readonly #todo: number[];
  /** By group and bin: whether a provider of the bin could serve the group, and how many do. Rows are groups. */
  #fits = new Uint8Array(0);
  #taken = new Int32Array(0);
  readonly #flow: BinFlow;
  /** The last cell of `#taken` that was chosen for the latest placing, or -1 before the first one. */
  #cell = -1;

  constructor(placement: GroupPlacement) {
    this.#placement = placement;
    this.#groupCount = placement.likes.length;
    this.#bins = new ProviderBins(placement);
    this.#todo = [...placement.likes];
    this.#flow = new BinFlow();
  }

  begin(): void {
    const { kinds, likes } = this.#placement;
    this.#bins.fill();
    if (this.counts.length < kinds.count * this.#groupCount) {
      this.counts = new Int32Array(kinds.slots.length * this.#groupCount);
      this.#fits = new Uint8Array(this.counts.length);
      this.#taken = new Int32Array(this.counts.length);
    }
    for (let group = 0; group < likes.length; group += 1) {
      this.#todo[group] = likes[group]!;
      for (let bin = 0; bin < this.#bins.count; bin += 1) {
        const at = group * this.#bins.count + bin;
        this.#fits[at] = this.#placement.fits(group, this.#bins.provider(bin, 0)) ? 1 : 0;
        this.#taken[at] = 0;
      }
    }
    this.#cell = -1;
  }

  next(): boolean {
    const { budget } = this.#placement;
    const binCount = this.#bins.count;
    let cell = this.#cell < 0 ? this.#enterFirst() : this.#takeOneOff(this.#cell);
    while (cell >= 0) {
      const next = cell + 1;
      const isRowEnd = next % binCount === 0;
      if (!this.#canPlaceAfter(cell)) {
        cell = this.#takeOneOff(cell);
        continue;
      }
      if (!budget.step() || (isRowEnd && !budget.step())) return false;
      if (next === this.#groupCount * binCount) {
        this.#cell = cell;
        this.#count();
        return true;
      }
      cell = this.#enter(next);
    }
    return false;
  }

  #enterFirst(): number {
    if (!this.#canPlaceRest(0, 0) || !this.#placement.budget.step()) return -1;
    return this.#enter(0);
  }

  /** Puts as many members of the cell's group as possible into its bin, and returns the cell. */
  #enter(cell: number): number {
    const bin = cell % this.#bins.count;
    const group = (cell - bin) / this.#bins.count;
    this.#take(cell, this.#fits[cell] === 1 ? Math.min(this.#todo[group]!, this.#bins.left[bin]!) : 0);
    return cell;
  }

  /**
   * Walks back from `cell` to the first cell that has something, and takes one member from it. Returns that cell, or -1 when all are empty.
   */
  #takeOneOff(cell: number): number {
    let last = cell;
    while (last >= 0 && this.#taken[last] === 0) last -= 1;
    if (last >= 0) this.#take(last, -1);
    return last;
  }

  #take(cell: number, times: number): void {
    const bin = cell % this.#bins.count;
    const group = (cell - bin) / this.#bins.count;
    this.#todo[group] = this.#todo[group]! - times;
    this.#bins.left[bin] = this.#bins.left[bin]! - times;
    this.#taken[cell] = this.#taken[cell]! + times;
  }

  #canPlaceAfter(cell: number): boolean {
    const bin = cell % this.#bins.count;
    return this.#canPlaceRest((cell - bin) / this.#bins.count, bin + 1);
  }

  /** Whether the remaining members can be placed: those of `group` in the bins from `firstBin` on, those of later groups in any bin. */
  #canPlaceRest(group: number, firstBin: number): boolean {
    const { left, count } = this.#bins;
    // The last group needs no flow, because no other group would have to make room for it.
    if (group < this.#groupCount - 1) {
      return this.#flow.finds({ todo: this.#todo, left, binCount: count, fits: this.#fits, group, firstBin });
    }
    let places = 0;
    for (let bin = firstBin; bin < count; bin += 1) if (this.#fits[group * count + bin] === 1) places += left[bin]!;
    return places >= this.#todo[group]!;
  }

  /** Fills `counts`. The providers of a bin are given out in order: first to the members of group 0, then to those of group 1, and so on. */
  #count(): void {
    this.counts.fill(0, 0, this.#placement.kinds.count * this.#groupCount);
    for (let bin = 0; bin < this.#bins.count; bin += 1) {
      let next = 0;
      for (let group = 0; group < this.#groupCount; group += 1) {
        for (let times = this.#taken[group * this.#bins.count + bin]!; times > 0; times -= 1) {
          this.counts[this.#bins.provider(bin, next) * this.#groupCount + group] = 1;
          next += 1;
        }
      }
    }
  }
}

/** Bins of providers that are alike. A provider that the unnumbered group uses has a bin to itself. */
class ProviderBins {
  count = 0;
  /** By bin: number of free providers. */
  left = new Int32Array(0);
  readonly #placement: GroupPlacement;
  /** The providers, bin by bin, and the place at which each bin begins. */
  #providers = new Int32Array(0);
  #starts = new Int32Array(0);

  constructor(placement: GroupPlacement) {
    this.#placement = placement;
  }

  /** The provider of a bin at a place. */
  provider(bin: number, place: number): number {
    return this.#providers[this.#starts[bin]! + place]!;
  }

  fill(): void {
    const { kinds, serves } = this.#placement;
    if (this.left.length < kinds.count) {
      this.left = new Int32Array(kinds.slots.length);
      this.#providers = new Int32Array(kinds.slots.length);
      this.#starts = new Int32Array(kinds.slots.length);
    }
    this.count = 0;
    let put = 0;
    let kindOfLast = -1;
    for (let provider = 0; provider < kinds.count; provider += 1) {
      if (serves[provider] !== 0) continue;
      this.#put(provider, put, kinds.kind[provider] !== kindOfLast);
      put += 1;
      kindOfLast = kinds.kind[provider]!;
    }
    for (let provider = 0; provider < kinds.count; provider += 1) {
      if (serves[provider] === 0) continue;
      this.#put(provider, put, true);
      put += 1;
    }
  }

  #put(provider: number, place: number, opensBin: boolean): void {
    this.#providers[place] = provider;
    if (opensBin) {
      this.#starts[this.count] = place;
      this.left[this.count] = 0;
      this.count += 1;
    }
    this.left[this.count - 1] = this.left[this.count - 1]! + 1;
  }
}

interface FlowProblem {
  /** By group: members to place. */
  readonly todo: readonly number[];
  /** By bin: number of free providers. */
  readonly left: Int32Array;
  readonly binCount: number;
  /** By group and bin: 1 if a provider of the bin could serve the group. Rows are groups. */
  readonly fits: Uint8Array;
  /** Groups before this one are placed. This one may use the bins from `firstBin` on, and later groups may use any bin. */
  readonly group: number;
  readonly firstBin: number;
}

/** Decides whether all members can be matched to free providers, moving earlier matches where necessary. */
class BinFlow {
  /** By bin: number of providers that are still free. */
  #left = new Int32Array(0);
  /** By group and bin: number of matched members. Rows are groups. */
  #flow = new Int32Array(0);
  /** By bin: the round in which it was last visited. The number of rounds only grows and may exceed 32 bits. */
  #visited = new Float64Array(0);
  #round = 0;

  finds(problem: FlowProblem): boolean {
    const { todo, group, binCount } = problem;
    if (this.#left.length < binCount || this.#flow.length < todo.length * binCount) {
      this.#left = new Int32Array(binCount);
      this.#flow = new Int32Array(todo.length * binCount);
      this.#visited = new Float64Array(binCount);
    }
    for (let bin = 0; bin < binCount; bin += 1) this.#left[bin] = problem.left[bin]!;
    this.#flow.fill(0, 0, todo.length * binCount);
    for (let from = group; from < todo.length; from += 1) {
      for (let times = 0; times < todo[from]!; times += 1) {
        this.#round += 1;
        if (!this.#augment(problem, from)) return false;
      }
    }
    return true;
  }

  /** Finds a provider for one member of the group `from`, moving other members if necessary. */
  #augment(problem: FlowProblem, from: number): boolean {
    const { todo, fits, group, firstBin, binCount } = problem;
    const left = this.#left;
    const flow = this.#flow;
    const visited = this.#visited;
    for (let bin = from === group ? firstBin : 0; bin < binCount; bin += 1) {
      if (visited[bin] === this.#round || fits[from * binCount + bin] === 0) continue;
      visited[bin] = this.#round;
      if (left[bin]! > 0) {
        left[bin] = left[bin]! - 1;
        flow[from * binCount + bin] = flow[from * binCount + bin]! + 1;
        return true;
      }
      for (let other = group; other < todo.length; other += 1) {
        if (flow[other * binCount + bin] === 0 || other === from || !this.#augment(problem, other)) continue;
        flow[other * binCount + bin] = flow[other * binCount + bin]! - 1;
        flow[from * binCount + bin] = flow[from * binCount + bin]! + 1;
        return true;
      }
    }
    return false;
  }
}
