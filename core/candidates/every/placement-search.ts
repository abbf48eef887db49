import type { LedgerView } from "../../ledger/ledger-view.ts";
import { type BoundPlacementRequest, bindPlacementRequest } from "../bound/bound-placement-request.ts";
import type { PlacementCandidateRequest } from "../request.ts";
import type { FoundCandidate } from "./found-candidates.ts";
import { SharingProviders } from "./sharing-providers.ts";
import { TreeEnumerator, type WorkBound } from "./tree-enumerator.ts";
import { treeVariables, type Variable } from "./tree-variables.ts";

/** The order of candidates, under upstream's names: all of one tree before the next (depth-first), or one of each tree in rotation. */
export type GenerationStrategy = "depth-first" | "breadth-first";

export interface PlacementSearchOptions {
  readonly strategy: GenerationStrategy;
  /** Shuffles trees and providers; each call returns a number below 1. Without it the view's order is kept. */
  readonly random?: () => number;
}

/**
 * Yields the candidates of one cell for a Placement request, one at a time. Equivalent children make distinct candidates here, as upstream counts
 * them. It enumerates only as many as are requested. It must be drained within one turn of the event loop.
 */
export class PlacementSearch {
  readonly #view: LedgerView;
  readonly #request: BoundPlacementRequest | null;
  readonly #sharing: SharingProviders;
  readonly #found: Iterator<TreeEnumerator>;
  /** Keys of candidates that consist of shared inventory only, since the searches of several trees find them. */
  readonly #lent = new Set<string>();
  /** Roots of the trees that contributed to a candidate. */
  readonly #roots = new Set<number>();
  #lastRoot = -1;
  readonly #used = new Set<number>();

  constructor(view: LedgerView, request: PlacementCandidateRequest, bound: WorkBound, options: PlacementSearchOptions) {
    this.#view = view;
    this.#request = bindPlacementRequest(view, request);
    this.#sharing = new SharingProviders(view);
    this.#found =
      options.strategy === "depth-first" ? this.#depthFirst(bound, options) : this.#breadthFirst(bound, options);
  }

  next(): FoundCandidate | null {
    for (let step = this.#found.next(); !step.done; step = this.#found.next()) {
      const { variables: choices, chosen: slots } = step.value;
      if (this.#isRepeated(choices, slots)) continue;
      this.#remember(slots);
      return { view: this.#view, choices, slots };
    }
    return null;
  }

  #remember(slots: readonly number[]): void {
    const { root } = this.#view.slots;
    for (let at = 0; at < slots.length; at += 1) {
      const slot = slots[at]!;
      if (this.#request!.flatOnly) this.#used.add(slot);
      if (root[slot] === this.#lastRoot) continue;
      this.#lastRoot = root[slot]!;
      this.#roots.add(this.#lastRoot);
    }
  }

  /** Slots of all providers of the trees that contributed to the candidates returned so far. */
  providers(): readonly number[] {
    if (this.#request?.flatOnly) return [...this.#used];
    const { slots } = this.#view;
    const found: number[] = [];
    for (const root of this.#roots) found.push(root, ...slots.descendants(root));
    return found;
  }

  *#enumerators(bound: WorkBound, options: PlacementSearchOptions): Generator<TreeEnumerator> {
    const request = this.#request;
    if (request === null) return;
    const { slots } = this.#view;
    const { random } = options;
    const order = random ? shuffled(slots.roots.slice(0, slots.rootCount), random) : slots.roots;
    for (let at = 0; at < slots.rootCount && bound.stepsLeft > 0; at += 1) {
      const root = order[at]!;
      if (!request.rootServes(slots.traitSet[root]!)) continue;
      const variables = treeVariables(this.#view, request, this.#sharing, root);
      if (variables === null) continue;
      const tried = random
        ? variables.map((variable) => ({ ...variable, options: shuffled([...variable.options], random) }))
        : variables;
      yield new TreeEnumerator(this.#view, request, tried, bound);
    }
  }

  /** Yields an enumerator for each candidate; the enumerator then stands at that candidate. */
  *#depthFirst(bound: WorkBound, options: PlacementSearchOptions): Generator<TreeEnumerator> {
    for (const tree of this.#enumerators(bound, options)) while (tree.next()) yield tree;
  }

  *#breadthFirst(bound: WorkBound, options: PlacementSearchOptions): Generator<TreeEnumerator> {
    const open: TreeEnumerator[] = [];
    for (const tree of this.#enumerators(bound, options)) {
      if (!tree.next()) continue;
      open.push(tree);
      yield tree;
    }
    for (let round = open; round.length > 0; ) {
      const left: TreeEnumerator[] = [];
      for (const tree of round) {
        if (!tree.next()) continue;
        left.push(tree);
        yield tree;
      }
      round = left;
    }
  }

  /** Whether the candidate was already found from another tree. Only a candidate that consists of shared inventory alone can be. */
  #isRepeated(choices: readonly Variable[], slots: readonly number[]): boolean {
    if (this.#sharing.slots.length === 0) return false;
    if (!slots.every((slot) => this.#sharing.isSharing(slot))) return false;
    const key = choices
      .map((choice, at) => `${choice.group.suffix}:${choice.amounts[0]?.index}:${slots[at]}`)
      .sort()
      .join();
    if (this.#lent.has(key)) return true;
    this.#lent.add(key);
    return false;
  }
}

/** Shuffles the list in place (Fisher-Yates). */
function shuffled<List extends { [index: number]: number; readonly length: number }>(
  list: List,
  random: () => number,
): List {
  for (let at = list.length - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1));
    const kept = list[at]!;
    list[at] = list[other]!;
    list[other] = kept;
  }
  return list;
}
