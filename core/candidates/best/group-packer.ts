import type { GroupCounts, GroupPlacement, GroupPlacer } from "./group-placement.ts";
import { RestBounds } from "./rest-bounds.ts";

/**
 * Finds every way, counting interchangeable ones once, to put the numbered groups on providers when several
 * groups may share one (`group_policy=none`).
 *
 * Each provider takes a row of counts, one for each group, with the largest group first. Among equivalent providers the rows never rise, so each
 * multiset of rows is found once. A branch is cut in three cases: a group has more members left than the remaining providers could take, a
 * class has less room left than is still needed, or more large groups are left than providers although no provider can take two of them.
 * Until the search backtracks for the first time these checks run only at the end of a row, since most searches never backtrack. After that
 * they run at every cell.
 */
export class GroupPacker implements GroupPlacer {
  counts: GroupCounts = new Int32Array(0);
  readonly #placement: GroupPlacement;
  readonly #groupCount: number;
  /** Groups in the order in which a row is filled. */
  readonly #order: readonly number[];
  /** By group: members that no provider has taken yet. */
  readonly #todo: number[];
  readonly #rest: RestBounds;
  /** The last cell of `counts` that was chosen for the latest placing, or -1 before the first one. */
  #cell = -1;
  #hasGoneBack = false;

  constructor(placement: GroupPlacement) {
    this.#placement = placement;
    this.#groupCount = placement.memberCounts.length;
    this.#order = largestFirst(placement);
    this.#todo = [...placement.memberCounts];
    this.#rest = new RestBounds(placement);
  }

  begin(): void {
    const { kinds, memberCounts } = this.#placement;
    const cells = kinds.count * this.#groupCount;
    if (this.counts.length < cells) this.counts = new Int32Array(kinds.slots.length * this.#groupCount);
    this.counts.fill(0, 0, cells);
    for (let group = 0; group < memberCounts.length; group += 1) this.#todo[group] = memberCounts[group]!;
    this.#rest.forget();
    this.#cell = -1;
    this.#hasGoneBack = false;
  }

  next(): boolean {
    const { budget } = this.#placement;
    let cell = this.#cell < 0 ? this.#enter(0) : this.#takeOneOff(this.#cell);
    while (cell >= 0) {
      if (this.#hasGoneBack && !this.#restCanTake(cell)) {
        if (!budget.step()) return false;
        cell = this.#takeOneOff(cell);
        continue;
      }
      const next = cell + 1;
      if (next % this.#groupCount > 0) {
        cell = this.#enter(next);
        continue;
      }
      if (!budget.step()) return false;
      if (this.#isAllPlaced()) {
        this.#cell = cell;
        return true;
      }
      cell = this.#canGoOn(next / this.#groupCount) ? this.#enter(next) : this.#takeOneOff(cell);
    }
    return false;
  }

  /** Gives the cell's provider as many members of its group as it can take. Returns the cell, or -1 when the budget is spent. */
  #enter(cell: number): number {
    const placement = this.#placement;
    if (!placement.budget.step()) return -1;
    const place = cell % this.#groupCount;
    const group = this.#order[place]!;
    const provider = (cell - place) / this.#groupCount;
    const ceiling = Math.min(this.#todo[group]!, this.#ceilingByEquivalent(provider, place));
    let most = 0;
    while (most < ceiling && placement.fits(group, provider)) {
      placement.place(group, provider, 1);
      most += 1;
    }
    this.#todo[group] = this.#todo[group]! - most;
    this.counts[provider * this.#groupCount + group] = most;
    return cell;
  }

  /**
   * Walks back from `cell` to the first cell that has something, and takes one member from it. Returns that cell, or -1 when there is none.
   */
  #takeOneOff(cell: number): number {
    this.#hasGoneBack = true;
    for (let last = cell; last >= 0; last -= 1) {
      const place = last % this.#groupCount;
      const group = this.#order[place]!;
      const provider = (last - place) / this.#groupCount;
      const at = provider * this.#groupCount + group;
      if (this.counts[at] === 0) continue;
      this.#placement.place(group, provider, -1);
      this.counts[at] = this.counts[at]! - 1;
      this.#todo[group] = this.#todo[group]! + 1;
      return last;
    }
    return -1;
  }

  #isAllPlaced(): boolean {
    for (const left of this.#todo) if (left > 0) return false;
    return true;
  }

  #canGoOn(provider: number): boolean {
    return provider < this.#placement.kinds.count && this.#rest.canTake(provider, this.#todo, this.#order);
  }

  /** Whether the later providers may have room for all remaining members of the groups in the cell's row, up to the cell's own group. */
  #restCanTake(cell: number): boolean {
    const place = cell % this.#groupCount;
    const provider = (cell - place) / this.#groupCount;
    return this.#rest.canTake(provider + 1, this.#todo, this.#order, place + 1);
  }

  /** The most that this cell may take: a provider's row may not exceed, read from the left, the row of the equivalent provider before it. */
  #ceilingByEquivalent(provider: number, place: number): number {
    const { kinds, serves } = this.#placement;
    const before = provider - 1;
    if (before < 0 || kinds.kind[before] !== kinds.kind[provider]) return Number.POSITIVE_INFINITY;
    if (serves[before] !== 0 || serves[provider] !== 0) return Number.POSITIVE_INFINITY;
    const row = provider * this.#groupCount;
    const rowBefore = before * this.#groupCount;
    for (let index = 0; index < place; index += 1) {
      const group = this.#order[index]!;
      if (this.counts[row + group]! < this.counts[rowBefore + group]!) return Number.POSITIVE_INFINITY;
    }
    return this.counts[rowBefore + this.#order[place]!]!;
  }
}

/** Sorts the groups by their largest share, over all classes, of the total that is requested. Groups with equal shares keep their order. */
function largestFirst(placement: GroupPlacement): readonly number[] {
  const { memberCounts, classCount } = placement;
  const groups = memberCounts.map((_, group) => group);
  const sizes = groups.map(() => 0);
  for (let index = 0; index < classCount; index += 1) {
    const wanted = groups.reduce((sum, group) => sum + memberCounts[group]! * placement.amountOf(group, index), 0);
    if (wanted === 0) continue;
    for (const group of groups) sizes[group] = Math.max(sizes[group]!, placement.amountOf(group, index) / wanted);
  }
  return groups.sort((a, b) => sizes[b]! - sizes[a]!);
}
