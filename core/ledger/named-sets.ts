/**
 * The sets of names (traits, aggregates) of a view's providers, in which each distinct set is stored once under a small number. Thousands of providers
 * share a few sets, so a search tests each set once and then compares numbers.
 *
 * A provider's names come row by row. Its rows are gathered until `settle`, and only the whole set gets a number: a set for each row would make the
 * cost of a provider grow with the square of its names. A set that no provider has any longer is freed, and its number used again.
 */
export class NamedSets<Name extends string> {
  /** The number of the empty set. */
  static readonly EMPTY = 0;

  readonly #nameOf: Name[] = [];
  readonly #idOf = new Map<Name, number>();
  /** The sorted member ids of each set, by set number. Empty for a number that is free. */
  readonly #members: (readonly number[])[] = [[]];
  readonly #setOf = new Map<string, number>([["", NamedSets.EMPTY]]);
  /** How many providers have each set. That of the empty set only rises: it is never freed. */
  readonly #holders: number[] = [0];
  readonly #freeNumbers: number[] = [];
  /** By slot: the ids of the provider's set, and those that were added (id) or removed (~id) since the last `settle`, in order. */
  readonly #gathered = new Map<number, number[]>();
  /** The entry of the provider whose rows are coming now; -1 for none. */
  #gatheredSlot = -1;
  #gatheredIds: number[] = [];
  #revision = 0;

  /** The numbers of the sets run from 0 to this value, exclusive. */
  get count(): number {
    return this.#members.length;
  }

  /** Rises when a number stands for another set than before. A test of all sets holds as long as it stays the same. */
  get revision(): number {
    return this.#revision;
  }

  /** The id of a name, or -1 if no provider ever had it. */
  idOf(name: Name): number {
    return this.#idOf.get(name) ?? -1;
  }

  has(set: number, id: number): boolean {
    return this.#members[set]!.includes(id);
  }

  names(set: number): Name[] {
    return this.#members[set]!.map((id) => this.#nameOf[id]!);
  }

  /**
   * Gathers the rows that follow for the provider in the slot, which has this set. Returns whether they are its first ones since the last
   * `settle`.
   */
  gather(slot: number, set: number): boolean {
    if (slot === this.#gatheredSlot) return false;
    const known = this.#gathered.get(slot);
    const ids = known ?? [...this.#members[set]!];
    if (known === undefined) this.#gathered.set(slot, ids);
    this.#gatheredSlot = slot;
    this.#gatheredIds = ids;
    return known === undefined;
  }

  /** Gives the provider whose rows are gathered one name more. */
  add(name: Name): void {
    this.#gatheredIds.push(this.#intern(name));
  }

  remove(name: Name): void {
    const id = this.idOf(name);
    if (id >= 0) this.#gatheredIds.push(~id);
  }

  removeAll(): void {
    this.#gatheredIds.length = 0;
  }

  /** Enters the sets of all gathered rows in `setOf`, by slot, and returns the slots that had such rows. */
  settle(setOf: Int32Array): Iterable<number> {
    if (this.#gathered.size === 0) return [];
    const gathered = [...this.#gathered];
    this.#gathered.clear();
    this.#gatheredSlot = -1;
    for (const [slot, ids] of gathered) {
      const before = setOf[slot]!;
      const set = this.#numberOf(membersOf(ids));
      if (set === before) continue;
      setOf[slot] = set;
      this.#holders[set]! += 1;
      this.#release(before);
    }
    return gathered.map(([slot]) => slot);
  }

  get memoryBytes(): number {
    return this.#nameOf.length * 120 + this.#members.reduce((sum, set) => sum + 100 + set.length * 16, 0);
  }

  #intern(name: Name): number {
    const known = this.#idOf.get(name);
    if (known !== undefined) return known;
    const id = this.#nameOf.push(name) - 1;
    this.#idOf.set(name, id);
    return id;
  }

  #numberOf(members: readonly number[]): number {
    const key = members.join();
    const known = this.#setOf.get(key);
    if (known !== undefined) return known;
    const number = this.#freeNumbers.pop() ?? this.#members.length;
    this.#members[number] = members;
    this.#holders[number] = 0;
    this.#setOf.set(key, number);
    this.#revision += 1;
    return number;
  }

  #release(set: number): void {
    if (set === NamedSets.EMPTY) return;
    this.#holders[set]! -= 1;
    if (this.#holders[set]! > 0) return;
    this.#setOf.delete(this.#members[set]!.join());
    this.#members[set] = [];
    this.#freeNumbers.push(set);
  }
}

/** The sorted ids that remain of gathered ones. */
function membersOf(ids: readonly number[]): readonly number[] {
  // Most providers gain names in the order in which the ids were given.
  if (ids.every((id, at) => id >= 0 && (at === 0 || ids[at - 1]! < id))) return ids;
  const members = new Set<number>();
  for (const id of ids) {
    if (id >= 0) members.add(id);
    else members.delete(~id);
  }
  return [...members].sort((a, b) => a - b);
}
