/**
 * Sets of names (traits, aggregates), in which each distinct set is stored once under a small number. Thousands of providers share a few
 * sets, so a search tests each set once and then compares numbers.
 *
 * Sets are never removed. Their number is the number of distinct combinations since the last load.
 */
export class NamedSets<Name extends string> {
  /** The number of the empty set. */
  static readonly EMPTY = 0;

  readonly #nameOf: Name[] = [];
  readonly #idOf = new Map<Name, number>();
  /** The sorted member ids of each set, by set number. */
  readonly #members: (readonly number[])[] = [[]];
  readonly #setOf = new Map<string, number>([["", NamedSets.EMPTY]]);
  /** Maps a set and a member to the set with it (positive key) or without it (negative key), so that set keys need not be built again. */
  readonly #steps = new Map<number, number>();

  /** How many distinct sets exist. Their numbers run from 0 to this value, exclusive. */
  get count(): number {
    return this.#members.length;
  }

  /** The id of a name, or -1 if no provider ever had it. */
  idOf(name: Name): number {
    return this.#idOf.get(name) ?? -1;
  }

  with(set: number, name: Name): number {
    const id = this.#intern(name);
    const step = this.#stepKey(set, id);
    const known = this.#steps.get(step);
    if (known !== undefined) return known;
    const members = this.#members[set]!;
    const next = members.includes(id) ? set : this.#setNumber([...members, id].sort((a, b) => a - b));
    this.#steps.set(step, next);
    return next;
  }

  without(set: number, name: Name): number {
    const id = this.idOf(name);
    if (id < 0) return set;
    const step = -this.#stepKey(set, id);
    const known = this.#steps.get(step);
    if (known !== undefined) return known;
    const next = this.#setNumber(this.#members[set]!.filter((member) => member !== id));
    this.#steps.set(step, next);
    return next;
  }

  has(set: number, id: number): boolean {
    return this.#members[set]!.includes(id);
  }

  names(set: number): Name[] {
    return this.#members[set]!.map((id) => this.#nameOf[id]!);
  }

  get memoryBytes(): number {
    return (
      this.#nameOf.length * 120 +
      this.#steps.size * 40 +
      this.#members.reduce((sum, set) => sum + 80 + set.length * 16, 0)
    );
  }

  /** Never 0, so that the negated key differs from it. */
  #stepKey(set: number, id: number): number {
    return set * 2 ** 22 + id + 1;
  }

  #intern(name: Name): number {
    const known = this.#idOf.get(name);
    if (known !== undefined) return known;
    const id = this.#nameOf.push(name) - 1;
    this.#idOf.set(name, id);
    return id;
  }

  #setNumber(members: readonly number[]): number {
    const key = members.join();
    const known = this.#setOf.get(key);
    if (known !== undefined) return known;
    const number = this.#members.push(members) - 1;
    this.#setOf.set(key, number);
    return number;
  }
}
