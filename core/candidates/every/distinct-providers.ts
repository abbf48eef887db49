/**
 * Enforces `group_policy=isolate`, which puts numbered groups on different providers. Besides the choices made so far it keeps one full
 * arrangement (a bipartite matching) that agrees with them. It refuses at once a choice that would leave no such arrangement, so a search
 * never runs into a dead end for lack of providers.
 *
 * Source: Kuhn's augmenting paths. Cost: a choice that differs from the arrangement takes at most one augmenting path.
 */
export class DistinctProviders {
  /** By variable and option: the provider, numbered from 0. Null when the policy does not bind the variable. */
  readonly #options: readonly (readonly number[] | null)[];
  readonly #providerOf: Int32Array;
  /** By provider: the variable that the arrangement gives it, or -1 for none. */
  readonly #variableOf: Int32Array;
  readonly #fixed: Uint8Array;
  /** By provider: the number of the last search for a path that visited it. */
  readonly #seen: Int32Array;
  #paths = 0;
  /** True when no arrangement exists at all. */
  readonly impossible: boolean;

  /** `options` lists, by variable, the slots that the variable may take. */
  constructor(options: readonly (readonly number[] | null)[]) {
    const numbers = new Map<number, number>();
    const numbered = new Map<readonly number[], readonly number[]>();
    for (const list of options) {
      if (list !== null && !numbered.has(list))
        numbered.set(
          list,
          list.map((slot) => numberOf(numbers, slot)),
        );
    }
    this.#options = options.map((list) => (list === null ? null : numbered.get(list)!));
    this.#providerOf = new Int32Array(options.length).fill(-1);
    this.#variableOf = new Int32Array(numbers.size).fill(-1);
    this.#fixed = new Uint8Array(options.length);
    this.#seen = new Int32Array(numbers.size);
    this.impossible = options.some((list, at) => list !== null && !this.#findPath(at, -1));
  }

  /** Whether another variable is fixed to this option. */
  isFixed(at: number, option: number): boolean {
    const options = this.#options[at]!;
    if (options === null) return false;
    const holder = this.#variableOf[options[option]!]!;
    return holder >= 0 && holder !== at && this.#fixed[holder] === 1;
  }

  /** Fixes a variable's option. Returns false and changes nothing when the other variables could then not all be served. */
  choose(at: number, option: number): boolean {
    const options = this.#options[at]!;
    if (options === null) return true;
    const provider = options[option]!;
    const holder = this.#variableOf[provider]!;
    if (holder === at) {
      this.#fixed[at] = 1;
      return true;
    }
    if (holder >= 0 && this.#fixed[holder] === 1) return false;
    const before = this.#providerOf[at]!;
    this.#variableOf[before] = -1;
    this.#assign(at, provider);
    this.#fixed[at] = 1;
    if (holder < 0) return true;
    this.#providerOf[holder] = -1;
    if (this.#findPath(holder, provider)) return true;
    this.#fixed[at] = 0;
    this.#assign(holder, provider);
    this.#assign(at, before);
    return false;
  }

  /** Takes back the last `choose` of a variable. The arrangement keeps its provider until another variable needs it. */
  undo(at: number): void {
    this.#fixed[at] = 0;
  }

  #assign(at: number, provider: number): void {
    this.#providerOf[at] = provider;
    this.#variableOf[provider] = at;
  }

  /** Finds a provider other than `but` for a variable. */
  #findPath(at: number, but: number): boolean {
    this.#paths += 1;
    if (but >= 0) this.#seen[but] = this.#paths;
    return this.#augment(at);
  }

  /** Finds a provider for a variable, and moves variables that are not fixed out of its way. */
  #augment(at: number): boolean {
    const options = this.#options[at]!;
    if (options === null) return true;
    for (let option = 0; option < options.length; option += 1) {
      const provider = options[option]!;
      if (this.#seen[provider] === this.#paths) continue;
      this.#seen[provider] = this.#paths;
      const holder = this.#variableOf[provider]!;
      if (holder >= 0 && (this.#fixed[holder] === 1 || !this.#augment(holder))) continue;
      this.#assign(at, provider);
      return true;
    }
    return false;
  }
}

function numberOf(numbers: Map<number, number>, slot: number): number {
  let number = numbers.get(slot);
  if (number === undefined) {
    number = numbers.size;
    numbers.set(slot, number);
  }
  return number;
}
