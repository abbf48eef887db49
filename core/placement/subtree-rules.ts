import type { Variable } from "./tree-variables.ts";

/**
 * `same_subtree`: of the providers that serve the named groups one must be at or above all the others.
 * Source: Placement API 1.36.
 */
export class SubtreeRules {
  readonly #parent: Int32Array;
  /** For each rule the variables it names. */
  readonly #rules: readonly (readonly number[])[];
  readonly #options: readonly ReadonlySet<number>[];

  constructor(parent: Int32Array, sameSubtrees: readonly (readonly string[])[], variables: readonly Variable[]) {
    this.#parent = parent;
    this.#rules = sameSubtrees.map((suffixes) =>
      variables.flatMap((variable, at) => (variable.granular && suffixes.includes(variable.group.suffix) ? [at] : [])),
    );
    this.#options = variables.map((variable) => new Set(variable.options));
  }

  /**
   * Whether every rule that names variable `at` can still hold: a common ancestor-or-self of what is chosen is chosen, too, or
   * could be by a variable whose turn is yet to come. `chosen`: slots by variable, -1 for not yet.
   */
  canHold(chosen: readonly number[], at: number): boolean {
    return this.#rules.every((rule) => !rule.includes(at) || this.#ruleCanHold(rule, chosen));
  }

  #ruleCanHold(rule: readonly number[], chosen: readonly number[]): boolean {
    const providers = rule.map((at) => chosen[at]!).filter((slot) => slot >= 0);
    const pending = rule.filter((at) => chosen[at]! < 0);
    for (let slot = providers[0]!; slot >= 0; slot = this.#parent[slot]!) {
      const above = slot;
      if (!providers.every((provider) => this.#isAtOrAbove(above, provider))) continue;
      if (providers.includes(above) || pending.some((at) => this.#options[at]!.has(above))) return true;
    }
    return false;
  }

  #isAtOrAbove(above: number, slot: number): boolean {
    for (let one = slot; one >= 0; one = this.#parent[one]!) if (one === above) return true;
    return false;
  }
}
