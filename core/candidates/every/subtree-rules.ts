import type { Variable } from "./tree-variables.ts";

/**
 * The rule `same_subtree`: of the providers that serve the named groups, one must be at or above all the others.
 * Source: Placement API 1.36.
 */
export class SubtreeRules {
  readonly #parent: Int32Array;
  /** By rule: the variables that it names. */
  readonly #rules: readonly (readonly number[])[];
  readonly #variables: readonly Variable[];

  constructor(parent: Int32Array, sameSubtree: readonly (readonly string[])[], variables: readonly Variable[]) {
    this.#parent = parent;
    this.#rules = sameSubtree.map((suffixes) => {
      const named: number[] = [];
      for (let at = 0; at < variables.length; at += 1) {
        const { granular, group } = variables[at]!;
        if (granular && suffixes.includes(group.suffix)) named.push(at);
      }
      return named;
    });
    this.#variables = variables;
  }

  /**
   * Whether every rule that names variable `at` can still hold: a common ancestor-or-self of the chosen providers is itself chosen, or a
   * variable without a choice yet could still take it. `chosen` holds slots by variable, or -1 for no choice yet.
   */
  canHold(chosen: readonly number[], at: number): boolean {
    for (const rule of this.#rules) if (rule.includes(at) && !this.#ruleCanHold(rule, chosen, at)) return false;
    return true;
  }

  #ruleCanHold(rule: readonly number[], chosen: readonly number[], at: number): boolean {
    for (let slot = chosen[at]!; slot >= 0; slot = this.#parent[slot]!)
      if (this.#isAboveAll(slot, rule, chosen) && this.#canBeChosen(slot, rule, chosen)) return true;
    return false;
  }

  #isAboveAll(slot: number, rule: readonly number[], chosen: readonly number[]): boolean {
    for (const at of rule) if (chosen[at]! >= 0 && !this.#isAtOrAbove(slot, chosen[at]!)) return false;
    return true;
  }

  #canBeChosen(slot: number, rule: readonly number[], chosen: readonly number[]): boolean {
    for (const at of rule) {
      if (chosen[at] === slot) return true;
      if (chosen[at]! < 0 && this.#variables[at]!.options.includes(slot)) return true;
    }
    return false;
  }

  #isAtOrAbove(above: number, slot: number): boolean {
    for (let one = slot; one >= 0; one = this.#parent[one]!) if (one === above) return true;
    return false;
  }
}
