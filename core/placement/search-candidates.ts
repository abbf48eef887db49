import type { ProviderUuid, ResourceClass } from "../ledger/ids.ts";
import type { LedgerView } from "../ledger/view.ts";
import type { Candidate, CandidateQuery, ProviderSummary } from "./candidate-query.ts";
import { type CompiledQuery, compileQuery } from "./compiled-query.ts";
import { SharingProviders } from "./sharing.ts";
import { TreeEnumerator, type WorkBound } from "./tree-enumerator.ts";
import { treeVariables, type Variable } from "./tree-variables.ts";

/** In which order candidates come: all of one tree before the next, or one of each tree in turn. Upstream's names. */
export type GenerationStrategy = "depth-first" | "breadth-first";

export interface SearchOptions {
  readonly strategy: GenerationStrategy;
  /** Shuffles trees and providers: a number below 1 each call. Absent: the view's order. */
  readonly random?: () => number;
}

/** A candidate as slots of one view: what each variable chose. Only good until the view changes. */
interface Found {
  readonly variables: readonly Variable[];
  readonly chosen: readonly number[];
  readonly root: number;
}

/**
 * The candidates of one cell for a Placement query, one at a time. Like children are distinct answers here, as upstream counts them;
 * nothing is enumerated that was not asked for. Must be drained within one turn of the event loop.
 */
export class CandidateSearch {
  readonly #view: LedgerView;
  readonly #query: CompiledQuery | null;
  readonly #sharing: SharingProviders;
  readonly #found: Iterator<Found>;
  /** Candidates of nobody's own tree, which several trees' searches come upon. */
  readonly #lent = new Set<string>();
  /** Roots of the trees that gave something to a candidate. */
  readonly #roots = new Set<number>();
  readonly #used = new Set<number>();

  constructor(view: LedgerView, query: CandidateQuery, bound: WorkBound, options: SearchOptions) {
    this.#view = view;
    this.#query = compileQuery(view, query);
    this.#sharing = new SharingProviders(view);
    this.#found =
      options.strategy === "depth-first" ? this.#depthFirst(bound, options) : this.#breadthFirst(bound, options);
  }

  next(): Candidate | null {
    for (let step = this.#found.next(); !step.done; step = this.#found.next()) {
      if (this.#isRepeated(step.value)) continue;
      for (const slot of step.value.chosen) {
        this.#used.add(slot);
        this.#roots.add(this.#view.slots.root[slot]!);
      }
      return this.#present(step.value);
    }
    return null;
  }

  /** Every provider of every tree that gave something to the candidates returned so far. */
  summaries(): readonly ProviderSummary[] {
    const { slots } = this.#view;
    const wanted = this.#query?.flatOnly
      ? [...this.#used]
      : [...this.#roots].flatMap((root) => [root, ...slots.descendants(root)]);
    return wanted.map((slot) => this.#summary(slot));
  }

  *#enumerators(
    bound: WorkBound,
    options: SearchOptions,
  ): Generator<{ readonly root: number; readonly trees: TreeEnumerator }> {
    const query = this.#query;
    if (query === null) return;
    const { slots } = this.#view;
    const order = options.random ? shuffled(slots.roots.slice(0, slots.rootCount), options.random) : slots.roots;
    for (let at = 0; at < slots.rootCount && bound.stepsLeft > 0; at += 1) {
      const root = order[at]!;
      if (!query.rootServes(slots.traitSet[root]!)) continue;
      const variables = treeVariables(this.#view, query, this.#sharing, root);
      if (variables === null) continue;
      const { random } = options;
      const tried = random
        ? variables.map((variable) => ({ ...variable, options: shuffled([...variable.options], random) }))
        : variables;
      yield { root, trees: new TreeEnumerator(this.#view, query, tried, bound) };
    }
  }

  *#depthFirst(bound: WorkBound, options: SearchOptions): Generator<Found> {
    for (const { root, trees } of this.#enumerators(bound, options)) {
      for (let chosen = trees.next(); chosen; chosen = trees.next()) yield { variables: trees.variables, chosen, root };
    }
  }

  *#breadthFirst(bound: WorkBound, options: SearchOptions): Generator<Found> {
    const open: { root: number; trees: TreeEnumerator }[] = [];
    for (const one of this.#enumerators(bound, options)) {
      const chosen = one.trees.next();
      if (chosen === null) continue;
      open.push(one);
      yield { variables: one.trees.variables, chosen, root: one.root };
    }
    for (let round = open; round.length > 0; ) {
      const left: typeof open = [];
      for (const one of round) {
        const chosen = one.trees.next();
        if (chosen === null) continue;
        left.push(one);
        yield { variables: one.trees.variables, chosen, root: one.root };
      }
      round = left;
    }
  }

  /** Only what consists of lent inventory alone can be found from several trees. */
  #isRepeated(found: Found): boolean {
    if (this.#sharing.slots.length === 0) return false;
    if (!found.chosen.every((slot) => this.#sharing.isSharing(slot))) return false;
    const key = found.variables
      .map((variable, at) => `${variable.group.suffix}:${variable.needs[0]?.index}:${found.chosen[at]}`)
      .sort()
      .join();
    if (this.#lent.has(key)) return true;
    this.#lent.add(key);
    return false;
  }

  #present(found: Found): Candidate {
    const { slots } = this.#view;
    const resources = new Map<ProviderUuid, Map<ResourceClass, number>>();
    const mappings = new Map<string, ProviderUuid[]>();
    found.variables.forEach((variable, at) => {
      const uuid = slots.uuid(found.chosen[at]!);
      const serving = mappings.get(variable.group.suffix);
      if (serving === undefined) mappings.set(variable.group.suffix, [uuid]);
      else if (!serving.includes(uuid)) serving.push(uuid);
      if (variable.needs.length === 0) return;
      let given = resources.get(uuid);
      if (given === undefined) {
        given = new Map();
        resources.set(uuid, given);
      }
      for (const { resourceClass, amount } of variable.needs)
        given.set(resourceClass, (given.get(resourceClass) ?? 0) + amount);
    });
    return { resources, mappings };
  }

  #summary(slot: number): ProviderSummary {
    const { slots, traits } = this.#view;
    const resources = new Map<ResourceClass, { readonly capacity: number; readonly used: number }>();
    for (const resourceClass of this.#view.resourceClasses()) {
      const column = this.#view.column(resourceClass)!;
      if (!column.has(slot)) continue;
      const used = column.used[slot]!;
      resources.set(resourceClass, { capacity: column.free[slot]! + used, used });
    }
    const parent = slots.parent[slot]!;
    return {
      uuid: slots.uuid(slot),
      parent: parent < 0 ? null : slots.uuid(parent),
      root: slots.uuid(slots.root[slot]!),
      traits: traits.names(slots.traitSet[slot]!).sort(standardFirst),
      resources,
    };
  }
}

/** The order in which upstream's databases list them: the standard names, which were there first, before one's own. */
function standardFirst(one: string, other: string): number {
  const custom = Number(one.startsWith("CUSTOM_")) - Number(other.startsWith("CUSTOM_"));
  return custom !== 0 ? custom : one < other ? -1 : 1;
}

/** Fisher-Yates, in place. */
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
