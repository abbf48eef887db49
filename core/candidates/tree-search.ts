import type { ResourceClass } from "../ledger/ids.ts";
import { type CompiledRequest, haveTogether } from "./compiled-request.ts";
import type { GroupCounts, GroupPlacement } from "./group-placement.ts";
import { hasGroupRules, keepsGroupRules } from "./group-rules.ts";
import { isolateGroups } from "./isolate-groups.ts";
import { packGroups } from "./pack-groups.ts";
import { type ProviderKinds, providerKinds } from "./provider-kinds.ts";
import type { WorkBudget } from "./work-budget.ts";

/** One way to serve a request from one tree, by slots of the view. */
export interface Assignment {
  readonly root: number;
  /** No (slot, class) twice. */
  readonly items: readonly { readonly slot: number; readonly resourceClass: ResourceClass; readonly amount: number }[];
  /** Which provider serves which group; several for the unnumbered group if it is spread. */
  readonly mappings: readonly { readonly suffix: string; readonly slots: readonly number[] }[];
}

/**
 * Every way to serve the request from one tree, up to likeness: like providers are interchangeable, and so are like groups; of
 * the ways that differ in nothing else one is given. Ends early when the budget is spent; what breaks a rule between groups
 * is dropped only when it is whole, and costs of the budget, too.
 *
 * The unnumbered group's classes are placed first, each on one provider; then the numbered groups by their policy.
 */
export function* assignmentsOfTree(request: CompiledRequest, root: number, budget: WorkBudget): Generator<Assignment> {
  if (request.numbered.length === 0 && request.view.slots.descendants(root).length === 0) {
    yield assignmentOnRoot(request, root);
    return;
  }
  const search = new TreeSearch(request, root, budget);
  if (!hasGroupRules(request.request)) {
    yield* search.placeUnnumbered(0);
    return;
  }
  const { parent } = request.view.slots;
  for (const assignment of search.placeUnnumbered(0)) {
    if (keepsGroupRules(request.request, assignment, parent)) yield assignment;
  }
}

/** A flat tree that passed the scan serves an unnumbered group in exactly one way. */
export function assignmentOnRoot(request: CompiledRequest, root: number): Assignment {
  const demands = request.unnumbered?.demands ?? [];
  return {
    root,
    items: demands.map(({ resourceClass, amount }) => ({ slot: root, resourceClass, amount })),
    mappings: request.unnumbered ? [{ suffix: "", slots: [root] }] : [],
  };
}

class TreeSearch {
  readonly #request: CompiledRequest;
  readonly #root: number;
  readonly #budget: WorkBudget;
  readonly #kinds: ProviderKinds;
  readonly #room: Float64Array;
  /** By class of the unnumbered group: the provider that serves it. */
  readonly #chosen: number[] = [];
  /** By provider: bits of the unnumbered group's classes it serves. */
  readonly #serves: number[];
  /** By class of the unnumbered group: its column in `room`. */
  readonly #classOf: readonly number[];

  constructor(request: CompiledRequest, root: number, budget: WorkBudget) {
    this.#request = request;
    this.#root = root;
    this.#budget = budget;
    this.#kinds = providerKinds(request, root);
    this.#room = this.#kinds.room.slice();
    this.#serves = this.#kinds.slots.map(() => 0);
    const classes = request.classes.map((demand) => demand.resourceClass);
    this.#classOf = (request.unnumbered?.demands ?? []).map((demand) => classes.indexOf(demand.resourceClass));
  }

  /** Places the unnumbered group's classes from `index` on, on each provider that differs from those before it. */
  *placeUnnumbered(index: number): Generator<Assignment> {
    if (!this.#budget.step()) return;
    const demands = this.#request.unnumbered?.demands ?? [];
    if (index === demands.length) {
      if (this.#haveTogether()) yield* this.#placeNumbered();
      return;
    }
    const { slots, kind, demandFits } = this.#kinds;
    const { amount } = demands[index]!;
    for (let provider = 0; provider < slots.length; provider += 1) {
      const at = provider * this.#request.classes.length + this.#classOf[index]!;
      if (demandFits[index * slots.length + provider] === 0 || this.#room[at]! < amount) continue;
      const before = provider - 1;
      if (before >= 0 && kind[before] === kind[provider] && this.#serves[before] === this.#serves[provider]) continue;
      this.#room[at] = this.#room[at]! - amount;
      this.#serves[provider] = this.#serves[provider]! + 2 ** index;
      this.#chosen[index] = provider;
      yield* this.placeUnnumbered(index + 1);
      this.#room[at] = this.#room[at]! + amount;
      this.#serves[provider] = this.#serves[provider]! - 2 ** index;
    }
  }

  #haveTogether(): boolean {
    const { unnumbered, view } = this.#request;
    if (!unnumbered || unnumbered.togetherSets === null) return true;
    const sets = this.#chosen.map((provider) => view.slots.traitSet[this.#kinds.slots[provider]!]!);
    return haveTogether(view, unnumbered, sets);
  }

  *#placeNumbered(): Generator<Assignment> {
    const { numbered, classes, isolate } = this.#request;
    if (numbered.length === 0) {
      yield this.#assignment(new Int32Array(0));
      return;
    }
    if (this.#kinds.slots.length === 0) return;
    const needs = new Float64Array(numbered.length * classes.length);
    numbered.forEach((group, index) => {
      for (const demand of group.demands) {
        needs[index * classes.length + classes.findIndex((like) => like.resourceClass === demand.resourceClass)] =
          demand.amount;
      }
    });
    const placement: GroupPlacement = {
      kinds: this.#kinds,
      room: this.#room,
      classCount: classes.length,
      touched: this.#serves.map((bits) => bits !== 0),
      needs,
      counts: numbered.map((group) => group.suffixes.length),
      budget: this.#budget,
    };
    for (const counts of isolate ? isolateGroups(placement) : packGroups(placement)) yield this.#assignment(counts);
  }

  #assignment(counts: GroupCounts): Assignment {
    const { unnumbered, numbered } = this.#request;
    const { slots } = this.#kinds;
    const amounts = new Map<number, Map<ResourceClass, number>>();
    const take = (provider: number, resourceClass: ResourceClass, amount: number) => {
      const ofProvider = amounts.get(provider) ?? new Map<ResourceClass, number>();
      amounts.set(provider, ofProvider.set(resourceClass, amount + (ofProvider.get(resourceClass) ?? 0)));
    };
    const mappings: { suffix: string; slots: number[] }[] = [];
    if (unnumbered) {
      unnumbered.demands.forEach((demand, index) => {
        take(this.#chosen[index]!, demand.resourceClass, demand.amount);
      });
      mappings.push({ suffix: "", slots: [...new Set(this.#chosen)].map((provider) => slots[provider]!) });
    }
    numbered.forEach((group, index) => {
      let next = 0;
      slots.forEach((slot, provider) => {
        for (let times = counts[provider * numbered.length + index]!; times > 0; times -= 1) {
          for (const demand of group.demands) take(provider, demand.resourceClass, demand.amount);
          mappings.push({ suffix: group.suffixes[next]!, slots: [slot] });
          next += 1;
        }
      });
    });
    const items = [...amounts].flatMap(([provider, ofProvider]) =>
      [...ofProvider].map(([resourceClass, amount]) => ({ slot: slots[provider]!, resourceClass, amount })),
    );
    return { root: this.#root, items, mappings };
  }
}
