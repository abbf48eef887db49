/**
 * Sets of names (traits, aggregates), each distinct set stored once under a small number. Thousands of providers share a
 * handful of sets, so a search asks "does this set serve?" once a set and then compares numbers.
 *
 * Sets are never forgotten: there are as many as distinct combinations were ever seen since the last load.
 */
export class NamedSets<Name extends string> {
  /** The number of the empty set. */
  static readonly EMPTY = 0;

  readonly #nameOf: Name[] = [];
  readonly #idOf = new Map<Name, number>();
  /** By set number: its members' ids, sorted. */
  readonly #members: (readonly number[])[] = [[]];
  readonly #setOf = new Map<string, number>([["", NamedSets.EMPTY]]);
  /** From a set and a member to the set with it (key positive) or without it (negative): spares building keys anew. */
  readonly #steps = new Map<number, number>();

  /** How many distinct sets there are: numbers run from 0 to this, exclusive. */
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

  /** Never 0, so that its negative is another key. */
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
