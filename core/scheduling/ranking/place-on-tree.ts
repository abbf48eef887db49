import type { AllocationRequest, Selection } from "../../../proto/gen/berth/shared.ts";
import {
  CODE_GAVE_UP,
  CODE_NO_COMBINATION,
  CODE_OUT_OF_STEPS,
  CODE_OUT_OF_TIME,
  type CompiledRequest,
} from "../../candidates/compiled-request.ts";
import { type SearchBudget, WORK_PER_TREE } from "../../candidates/search-budget.ts";
import { type Assignment, searchTree } from "../../candidates/tree-search.ts";
import type { ProviderSlots } from "../../ledger/provider-slots.ts";

/** A tree that took so many steps in vain is remembered: others that are just like it need not be searched. */
const HARD_STEPS = 200;

/**
 * The preferred way in which a request fits on a tree that passed the sieve, or the refusal's code. A code of `isForNow` says that
 * the budget was spent before the tree was searched to its end: nothing is known of the tree.
 */
export function placeOnTree(request: CompiledRequest, root: number, budget: SearchBudget): AllocationRequest | number {
  if (budget.spentBy !== null) return codeOfSpent(budget);
  const stepsMax = budget.stepsForTree;
  const search = searchTree(request, root, stepsMax);
  const { size } = search;
  const known = search.knownInVain();
  if (known !== null) {
    budget.spend(size);
    return known ? CODE_GAVE_UP : CODE_NO_COMBINATION;
  }
  const assignment = search.next();
  budget.spend(search.steps + size);
  if (assignment) return wayOf(request, assignment);
  const { gaveUp } = search;
  if (gaveUp && stepsMax < WORK_PER_TREE) return codeOfSpent(budget);
  if (search.steps >= HARD_STEPS) search.rememberInVain(gaveUp);
  return gaveUp ? CODE_GAVE_UP : CODE_NO_COMBINATION;
}

/** The refusal is about the decision, not about the tree. */
export const isForNow = (code: number): boolean => code === CODE_OUT_OF_STEPS || code === CODE_OUT_OF_TIME;

function codeOfSpent({ spentBy }: SearchBudget): number {
  return spentBy === "time" ? CODE_OUT_OF_TIME : CODE_OUT_OF_STEPS;
}

/** Up to `most` ways, the preferred one first; none when the budget is spent. */
export function waysOnTree(
  request: CompiledRequest,
  root: number,
  most: number,
  budget: SearchBudget,
): AllocationRequest[] {
  if (budget.spentBy !== null) return [];
  const search = searchTree(request, root, budget.stepsForTree);
  const ways: AllocationRequest[] = [];
  while (ways.length < most) {
    const assignment = search.next();
    if (!assignment) break;
    ways.push(wayOf(request, assignment));
  }
  budget.spend(search.steps);
  return ways;
}

export function selectionOf({ view }: CompiledRequest, root: number, allocation: AllocationRequest): Selection {
  const { hosts, slots } = view;
  return { host: hosts.nameOf(root) ?? "", rootProvider: slots.uuid(root), availabilityZone: "", allocation };
}

/** The wire's form of a way to fit. A group that is served by several providers names them with commas between. */
function wayOf({ view: { slots } }: CompiledRequest, { items, mappings }: Assignment): AllocationRequest {
  return {
    items,
    // A suffix may be any word, `__proto__`, too: as an entry it is one like the others.
    mappings: Object.fromEntries(mappings.map(({ suffix, slots: serving }) => [suffix, namesOf(slots, serving)])),
  };
}

function namesOf(slots: Readonly<ProviderSlots>, serving: readonly number[]): string {
  return serving.length === 1 ? slots.uuid(serving[0]!) : serving.map((slot) => slots.uuid(slot)).join();
}
