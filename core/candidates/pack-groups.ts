import type { GroupCounts, GroupPlacement, GroupPlacer } from "./group-placement.ts";

/**
 * Every way, up to likeness, to put the numbered groups on providers when several may share one (`group_policy=none`).
 *
 * Provider after provider takes a row of counts, one a group; among like providers the rows never rise, so each multiset of
 * rows is met once. Branches are cut when a group has more likes left than the remaining providers could take, or a class
 * less room left than is still needed.
 */
export class GroupPacker implements GroupPlacer {
  counts: GroupCounts = new Int32Array(0);
  readonly #placement: GroupPlacement;
  readonly #groupCount: number;
  /** By group: likes that no provider took yet. */
  readonly #todo: number[];
  readonly #rest: RestBounds;
  /** The last cell of `counts` that was chosen for the way given last; -1: none was given yet. */
  #cell = -1;

  constructor(placement: GroupPlacement) {
    this.#placement = placement;
    this.#groupCount = placement.likes.length;
    this.#todo = [...placement.likes];
    this.#rest = new RestBounds(placement);
  }

  begin(): void {
    const { kinds, likes } = this.#placement;
    const cells = kinds.count * this.#groupCount;
    if (this.counts.length < cells) this.counts = new Int32Array(kinds.slots.length * this.#groupCount);
    this.counts.fill(0, 0, cells);
    for (let group = 0; group < likes.length; group += 1) this.#todo[group] = likes[group]!;
    this.#rest.forget();
    this.#cell = -1;
  }

  next(): boolean {
    let cell = this.#cell < 0 ? this.#enter(0) : this.#takeOneOff(this.#cell);
    while (cell >= 0) {
      const next = cell + 1;
      if (next % this.#groupCount > 0) {
        cell = this.#enter(next);
        continue;
      }
      if (!this.#placement.budget.step()) return false;
      if (this.#isAllPlaced()) {
        this.#cell = cell;
        return true;
      }
      cell = this.#canGoOn(next / this.#groupCount) ? this.#enter(next) : this.#takeOneOff(cell);
    }
    return false;
  }

  /** The provider of the cell takes as many likes of its group as it can. Returns the cell; -1: the budget is spent. */
  #enter(cell: number): number {
    const placement = this.#placement;
    if (!placement.budget.step()) return -1;
    const group = cell % this.#groupCount;
    const provider = (cell - group) / this.#groupCount;
    const ceiling = Math.min(this.#todo[group]!, this.#ceilingByLike(provider, group));
    let most = 0;
    while (most < ceiling && placement.fits(group, provider)) {
      placement.place(group, provider, 1);
      most += 1;
    }
    this.#todo[group] = this.#todo[group]! - most;
    this.counts[cell] = most;
    return cell;
  }

  /** From `cell` back, the first that has something takes one less; -1: none has. */
  #takeOneOff(cell: number): number {
    let last = cell;
    while (last >= 0 && this.counts[last] === 0) last -= 1;
    if (last < 0) return -1;
    const group = last % this.#groupCount;
    this.#placement.place(group, (last - group) / this.#groupCount, -1);
    this.counts[last] = this.counts[last]! - 1;
    this.#todo[group] = this.#todo[group]! + 1;
    return last;
  }

  #isAllPlaced(): boolean {
    for (const left of this.#todo) if (left > 0) return false;
    return true;
  }

  #canGoOn(provider: number): boolean {
    return provider < this.#placement.kinds.count && this.#rest.canTake(provider, this.#todo);
  }

  /** A provider's row may not exceed that of the like one before it, read from the left. */
  #ceilingByLike(provider: number, group: number): number {
    const { kinds, serves } = this.#placement;
    const before = provider - 1;
    if (before < 0 || kinds.kind[before] !== kinds.kind[provider]) return Number.POSITIVE_INFINITY;
    if (serves[before] !== 0 || serves[provider] !== 0) return Number.POSITIVE_INFINITY;
    const row = provider * this.#groupCount;
    const rowBefore = before * this.#groupCount;
    for (let index = 0; index < group; index += 1) {
      if (this.counts[row + index]! < this.counts[rowBefore + index]!) return Number.POSITIVE_INFINITY;
    }
    return this.counts[rowBefore + group]!;
  }
}

/** What the providers from a given one on could take at most. Row by provider. */
class RestBounds {
  readonly #placement: GroupPlacement;
  /** By group: likes, each group looked at by itself. */
  #places = new Float64Array(0);
  /** By class: room. */
  #room = new Float64Array(0);
  #known = false;

  constructor(placement: GroupPlacement) {
    this.#placement = placement;
  }

  forget(): void {
    this.#known = false;
  }

  /** Whether the providers from this one on, which have nothing yet, may take so many likes of each group. */
  canTake(provider: number, todo: readonly number[]): boolean {
    // Known no earlier than asked for: the first provider often takes it all. It is the only one that has something by then.
    if (!this.#known) this.#find(provider);
    const { classCount } = this.#placement;
    for (let group = 0; group < todo.length; group += 1) {
      if (todo[group]! > this.#places[provider * todo.length + group]!) return false;
    }
    for (let index = 0; index < classCount; index += 1) {
      let needed = 0;
      for (let group = 0; group < todo.length; group += 1) needed += todo[group]! * this.#placement.need(group, index);
      if (needed > 0 && needed > this.#room[provider * classCount + index]!) return false;
    }
    return true;
  }

  #find(first: number): void {
    const { kinds, room, classCount, likes } = this.#placement;
    if (this.#places.length < (kinds.count + 1) * likes.length) {
      this.#places = new Float64Array((kinds.slots.length + 1) * likes.length);
    }
    if (this.#room.length < (kinds.count + 1) * classCount) {
      this.#room = new Float64Array((kinds.slots.length + 1) * classCount);
    }
    this.#places.fill(0, kinds.count * likes.length, (kinds.count + 1) * likes.length);
    this.#room.fill(0, kinds.count * classCount, (kinds.count + 1) * classCount);
    for (let provider = kinds.count - 1; provider >= first; provider -= 1) {
      for (let group = 0; group < likes.length; group += 1) {
        const at = provider * likes.length + group;
        this.#places[at] = this.#places[at + likes.length]! + this.#placesOn(provider, group);
      }
      for (let index = 0; index < classCount; index += 1) {
        const at = provider * classCount + index;
        this.#room[at] = this.#room[at + classCount]! + Math.max(0, room[at]!);
      }
    }
    this.#known = true;
  }

  #placesOn(provider: number, group: number): number {
    const { room, classCount } = this.#placement;
    if (!this.#placement.fits(group, provider)) return 0;
    let most = Number.POSITIVE_INFINITY;
    for (let index = 0; index < classCount; index += 1) {
      const need = this.#placement.need(group, index);
      if (need > 0) most = Math.min(most, Math.floor(room[provider * classCount + index]! / need));
    }
    return most;
  }
}
