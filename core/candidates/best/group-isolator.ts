import { BinFlow } from "./bin-flow.ts";
import type { GroupCounts, GroupPlacement, GroupPlacer } from "./group-placement.ts";
import { ProviderBins } from "./provider-bins.ts";

/**
 * Finds every way, counting interchangeable ones once, to put each numbered group on a provider that no
 * other numbered group uses (`group_policy=isolate`).
 *
 * This is a transport problem between the members of each group and the providers of each kind. Before each choice a flow decides whether the
 * rest can still be placed. So no branch is searched without a result, and an impossible request is known at the root.
 */
export class GroupIsolator implements GroupPlacer {
  counts: GroupCounts = new Int32Array(0);
  readonly #placement: GroupPlacement;
  readonly #groupCount: number;
  readonly #bins: ProviderBins;
  /** For each group, the number of its members that are still to be placed. */
  readonly #todo: number[];
  /** By group and bin: whether a provider of the bin could serve the group, and how many do. Rows are groups. */
  #fits = new Uint8Array(0);
  #taken = new Int32Array(0);
  readonly #flow: BinFlow;
  /** The last cell of `#taken` that was chosen for the latest placing, or -1 before the first one. */
  #cell = -1;

  constructor(placement: GroupPlacement) {
    this.#placement = placement;
    this.#groupCount = placement.memberCounts.length;
    this.#bins = new ProviderBins(placement);
    this.#todo = [...placement.memberCounts];
    this.#flow = new BinFlow();
  }

  begin(): void {
    const { kinds, memberCounts } = this.#placement;
    this.#bins.fill();
    if (this.counts.length < kinds.count * this.#groupCount) {
      this.counts = new Int32Array(kinds.slots.length * this.#groupCount);
      this.#fits = new Uint8Array(this.counts.length);
      this.#taken = new Int32Array(this.counts.length);
    }
    for (let group = 0; group < memberCounts.length; group += 1) {
      this.#todo[group] = memberCounts[group]!;
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
