/**
 * Keeps the promise of `group_policy=isolate`: numbered groups on different providers. Beside the choices made so far it
 * holds one full arrangement (a bipartite matching) that agrees with them; a choice after which there is none is refused at once,
 * so that a search never walks into a dead end for want of providers.
 *
 * Source: Kuhn's augmenting paths. Cost: a choice other than the arrangement's own takes at most one augmenting path.
 */
export class DistinctProviders {
  /** By variable: the slots it may have; null: it is not bound by the policy. */
  readonly #options: readonly (readonly number[] | null)[];
  readonly #slotOf: number[];
  readonly #variableOf = new Map<number, number>();
  readonly #fixed: boolean[];
  /** There is no arrangement at all. */
  readonly impossible: boolean;

  constructor(options: readonly (readonly number[] | null)[]) {
    this.#options = options;
    this.#slotOf = options.map(() => -1);
    this.#fixed = options.map(() => false);
    this.impossible = options.some((list, at) => list !== null && !this.#augment(at, new Set()));
  }

  /** Fixes a variable's slot. False, and nothing changed, when the others could then not all be served. */
  choose(at: number, slot: number): boolean {
    if (this.#options[at] === null) return true;
    const holder = this.#variableOf.get(slot);
    if (holder === at) {
      this.#fixed[at] = true;
      return true;
    }
    if (holder !== undefined && this.#fixed[holder]) return false;
    const before = this.#slotOf[at]!;
    this.#variableOf.delete(before);
    this.#assign(at, slot);
    this.#fixed[at] = true;
    if (holder === undefined) return true;
    this.#slotOf[holder] = -1;
    if (this.#augment(holder, new Set([slot]))) return true;
    this.#fixed[at] = false;
    this.#assign(holder, slot);
    this.#assign(at, before);
    return false;
  }

  /** Takes back the last `choose` of a variable; its slot stays in the arrangement until somebody else wants it. */
  undo(at: number): void {
    this.#fixed[at] = false;
  }

  #assign(at: number, slot: number): void {
    this.#slotOf[at] = slot;
    this.#variableOf.set(slot, at);
  }

  /** Finds a slot for a variable, moving others that are not fixed out of the way. */
  #augment(at: number, seen: Set<number>): boolean {
    for (const slot of this.#options[at] ?? []) {
      if (seen.has(slot)) continue;
      seen.add(slot);
      const holder = this.#variableOf.get(slot);
      if (holder !== undefined && (this.#fixed[holder] || !this.#augment(holder, seen))) continue;
      this.#assign(at, slot);
      return true;
    }
    return false;
  }
}
