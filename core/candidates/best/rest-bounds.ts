import type { GroupPlacement } from "./group-placement.ts";

/** Upper bounds on what the providers from a given one on could take. Rows are providers. */
export class RestBounds {
  readonly #placement: GroupPlacement;
  /** By group: how many members there is room for, with each group considered by itself. */
  #places = new Float64Array(0);
  /** By class: the room of all these providers together, and that of the roomiest one. */
  #room = new Float64Array(0);
  #roomiest = new Float64Array(0);
  #known = false;

  constructor(placement: GroupPlacement) {
    this.#placement = placement;
  }

  forget(): void {
    this.#known = false;
  }

  /**
   * Whether the providers from this one on, which have nothing yet, may be able to take the given number of members of each group. Only the
   * first `count` groups of `order` are considered.
   */
  canTake(provider: number, todo: readonly number[], order: readonly number[], count = order.length): boolean {
    // The bounds are computed on first use, because the first provider often takes everything. By then it is the only one that has
    // something.
    if (!this.#known) this.#find(provider);
    const { classCount, kinds } = this.#placement;
    for (let place = 0; place < count; place += 1) {
      const group = order[place]!;
      if (todo[group]! > this.#places[provider * todo.length + group]!) return false;
    }
    for (let index = 0; index < classCount; index += 1) {
      const roomiest = this.#roomiest[provider * classCount + index]!;
      let needed = 0;
      let large = 0;
      for (let place = 0; place < count; place += 1) {
        const group = order[place]!;
        const amount = this.#placement.amountOf(group, index);
        needed += todo[group]! * amount;
        if (amount * 2 > roomiest) large += todo[group]!;
      }
      if (needed > 0 && needed > this.#room[provider * classCount + index]!) return false;
      // No provider has room for two of these members.
      if (large > kinds.count - provider) return false;
    }
    return true;
  }

  #find(first: number): void {
    const { kinds, room, classCount, memberCounts } = this.#placement;
    if (this.#places.length < (kinds.count + 1) * memberCounts.length) {
      this.#places = new Float64Array((kinds.slots.length + 1) * memberCounts.length);
    }
    if (this.#room.length < (kinds.count + 1) * classCount) {
      this.#room = new Float64Array((kinds.slots.length + 1) * classCount);
      this.#roomiest = new Float64Array(this.#room.length);
    }
    this.#places.fill(0, kinds.count * memberCounts.length, (kinds.count + 1) * memberCounts.length);
    this.#room.fill(0, kinds.count * classCount, (kinds.count + 1) * classCount);
    this.#roomiest.fill(0, kinds.count * classCount, (kinds.count + 1) * classCount);
    for (let provider = kinds.count - 1; provider >= first; provider -= 1) {
      for (let group = 0; group < memberCounts.length; group += 1) {
        const at = provider * memberCounts.length + group;
        this.#places[at] = this.#places[at + memberCounts.length]! + this.#placesOn(provider, group);
      }
      for (let index = 0; index < classCount; index += 1) {
        const at = provider * classCount + index;
        this.#room[at] = this.#room[at + classCount]! + Math.max(0, room[at]!);
        this.#roomiest[at] = Math.max(this.#roomiest[at + classCount]!, room[at]!);
      }
    }
    this.#known = true;
  }

  #placesOn(provider: number, group: number): number {
    const { room, classCount } = this.#placement;
    if (!this.#placement.fits(group, provider)) return 0;
    let most = Number.POSITIVE_INFINITY;
    for (let index = 0; index < classCount; index += 1) {
      const amount = this.#placement.amountOf(group, index);
      if (amount > 0) most = Math.min(most, Math.floor(room[provider * classCount + index]! / amount));
    }
    return most;
  }
}
