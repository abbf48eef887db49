import type { LedgerView } from "../../ledger/ledger-view.ts";
import type { BoundPlacementRequest, SharedOut } from "../bound/bound-placement-request.ts";
import { DistinctProviders } from "./distinct-providers.ts";
import { SubtreeRules } from "./subtree-rules.ts";
import type { Variable } from "./tree-variables.ts";

const NOTHING: readonly SharedOut[] = [];

/** Bounds the work of a whole search. Each provider that is tried for a choice costs one step. */
export interface WorkBound {
  stepsLeft: number;
}

/**
 * Enumerates all candidates of one tree, one at a time: depth-first over the choices, beginning with the scarcest. It leaves a branch as
 * soon as a provider would have to give more than it has, or the rules on distinct providers or subtrees can no longer hold. So the cost of
 * the next candidate does not depend on the number of combinations.
 *
 * `next` advances to the following assignment, which `chosen` then returns. It returns false after the last one or when the bound is
 * reached (`bound.stepsLeft` is then 0).
 */
export class TreeEnumerator {
  readonly #view: LedgerView;
  readonly #request: BoundPlacementRequest;
  readonly #bound: WorkBound;
  readonly #variables: readonly Variable[];
  /** Traits that the providers of the group without suffix must have together. */
  readonly #sharedOut: readonly SharedOut[];
  readonly #distinct: DistinctProviders | null;
  readonly #subtrees: SubtreeRules | null;
  /** By variable: the option being tried, or -1 before the first. */
  readonly #tried: number[];
  readonly #chosen: number[];
  #depth = 0;

  constructor(view: LedgerView, request: BoundPlacementRequest, variables: readonly Variable[], bound: WorkBound) {
    this.#view = view;
    this.#request = request;
    this.#bound = bound;
    this.#variables = variables.toSorted((a, b) => a.options.length - b.options.length || amountOf(b) - amountOf(a));
    this.#sharedOut = variables.find((variable) => !variable.granular)?.group.sharedOut ?? NOTHING;
    this.#tried = new Array<number>(variables.length).fill(-1);
    this.#chosen = new Array<number>(variables.length).fill(-1);
    this.#distinct = request.isolate
      ? new DistinctProviders(this.#variables.map((variable) => (variable.granular ? variable.options : null)))
      : null;
    this.#subtrees =
      request.sameSubtree.length > 0 ? new SubtreeRules(view.slots.parent, request.sameSubtree, this.#variables) : null;
    if (this.#distinct?.impossible || this.#cannotHold()) this.#depth = -1;
  }

  get variables(): readonly Variable[] {
    return this.#variables;
  }

  /** The chosen slot of each variable. */
  get chosen(): readonly number[] {
    return this.#chosen;
  }

  next(): boolean {
    const last = this.#variables.length;
    if (this.#depth === last) this.#retreat();
    while (this.#depth >= 0) {
      if (this.#depth === last) {
        if (this.#isWhole()) return true;
        this.#retreat();
        continue;
      }
      if (!this.#advance()) this.#retreat();
    }
    return false;
  }

  /** Tries the remaining options of the current variable. Returns true when it took one and moved to the next variable. */
  #advance(): boolean {
    const at = this.#depth;
    const { options } = this.#variables[at]!;
    for (let option = this.#tried[at]! + 1; option < options.length; option += 1) {
      if (this.#bound.stepsLeft === 0) break;
      this.#bound.stepsLeft -= 1;
      this.#tried[at] = option;
      if (this.#take(at, options[option]!, option)) {
        this.#depth += 1;
        return true;
      }
    }
    return false;
  }

  /** Returns to the previous variable and undoes its choice. */
  #retreat(): void {
    if (this.#depth < this.#variables.length) this.#tried[this.#depth] = -1;
    this.#depth -= 1;
    if (this.#depth >= 0) this.#release(this.#depth);
  }

  #take(at: number, slot: number, option: number): boolean {
    const distinct = this.#distinct;
    if (distinct?.isFixed(at, option) || !this.#fits(at, slot)) return false;
    if (distinct && !distinct.choose(at, option)) return false;
    this.#chosen[at] = slot;
    if (this.#subtrees === null || this.#subtrees.canHold(this.#chosen, at)) return true;
    this.#release(at);
    return false;
  }

  #release(at: number): void {
    this.#distinct?.undo(at);
    this.#chosen[at] = -1;
  }

  /** Whether the amounts that all groups take from one provider fit it together and stay within its max_unit. */
  #fits(at: number, slot: number): boolean {
    for (const { index, column, amount } of this.#variables[at]!.amounts) {
      const sum = this.#takenOf(at, slot, index) + amount;
      if (sum > column.free[slot]! || sum > column.maxUnit[slot]!) return false;
    }
    return true;
  }

  /** The amount of a class that earlier choices take from a provider. There are so few choices that a scan is faster than keeping count. */
  #takenOf(at: number, slot: number, index: number): number {
    let taken = 0;
    for (let before = 0; before < at; before += 1) {
      if (this.#chosen[before] !== slot) continue;
      for (const requested of this.#variables[before]!.amounts)
        if (requested.index === index) taken += requested.amount;
    }
    return taken;
  }

  /** Checks the conditions that only a complete assignment can meet or fail. */
  #isWhole(): boolean {
    return this.#hasRequiredTraits() && (!this.#request.flatOnly || this.#hasOneProviderPerTree());
  }

  #hasRequiredTraits(): boolean {
    const { traitSet } = this.#view.slots;
    for (const { bitsOf, all } of this.#sharedOut) {
      let bits = 0;
      for (let at = 0; at < this.#variables.length; at += 1)
        if (!this.#variables[at]!.granular) bits |= bitsOf(traitSet[this.#chosen[at]!]!);
      if (bits !== all) return false;
    }
    return true;
  }

  #hasOneProviderPerTree(): boolean {
    const providers = new Set(this.#chosen);
    const roots = new Set([...providers].map((slot) => this.#view.slots.root[slot]));
    return providers.size === roots.size;
  }

  /**
   * True when groups that ask for the same cannot all find room in any arrangement. Counting shows this at once, whereas trying would go
   * through every arrangement.
   */
  #cannotHold(): boolean {
    if (!this.#request.hasEqualGroups) return false;
    const alike = Map.groupBy(
      this.#variables.filter((variable) => variable.granular && variable.amounts.length > 0),
      (variable) =>
        `${variable.options.join()};${variable.amounts.map((requested) => `${requested.index}:${requested.amount}`).join()}`,
    );
    for (const variables of alike.values()) {
      const [first] = variables;
      if (first === undefined || variables.length < 2) continue;
      const room = first.options.reduce((sum, slot) => sum + timesThatFit(first, slot), 0);
      if (room < variables.length) return true;
    }
    return false;
  }
}

const amountOf = (variable: Variable): number => variable.amounts.reduce((sum, requested) => sum + requested.amount, 0);

function timesThatFit(variable: Variable, slot: number): number {
  return Math.min(
    ...variable.amounts.map(({ column, amount }) =>
      Math.floor(Math.min(column.free[slot]!, column.maxUnit[slot]!) / amount),
    ),
  );
}
