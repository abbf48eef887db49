import type { AllocationRequest, Selection } from "../../../proto/gen/berth/shared.ts";
import { type Assignment, searchTree } from "../../candidates/best/tree-search.ts";
import {
  type BoundRequest,
  CODE_GAVE_UP,
  CODE_NO_COMBINATION,
  CODE_OUT_OF_STEPS,
  CODE_OUT_OF_TIME,
} from "../../candidates/bound/bound-request.ts";
import { type SearchBudget, WORK_PER_TREE } from "../../candidates/search-budget.ts";
import type { ProviderSlots } from "../../ledger/provider-slots.ts";

/** A fruitless search of this many steps is remembered, so that identical trees need not be searched. */
const HARD_STEPS = 200;

/**
 * The preferred way in which a request fits on a tree that passed the scan, or the refusal's code. A code of `isForNow` means that the
 * budget was spent before the search of the tree ended, so whether the request fits is unknown.
 */
export function placeOnTree(request: BoundRequest, root: number, budget: SearchBudget): AllocationRequest | number {
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

/** Whether the refusal concerns the decision's budget and not the tree. */
export const isForNow = (code: number): boolean => code === CODE_OUT_OF_STEPS || code === CODE_OUT_OF_TIME;

function codeOfSpent({ spentBy }: SearchBudget): number {
  return spentBy === "time" ? CODE_OUT_OF_TIME : CODE_OUT_OF_STEPS;
}

/** Up to `most` ways, with the preferred one first. Empty when the budget is spent. */
export function waysOnTree(
  request: BoundRequest,
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

export function selectionOf({ view }: BoundRequest, root: number, allocation: AllocationRequest): Selection {
  const { hosts, slots } = view;
  return { host: hosts.nameOf(root) ?? "", rootProvider: slots.uuid(root), availabilityZone: "", allocation };
}

/** Converts a way to fit to its wire format. The names of several providers of one group are separated by commas. */
function wayOf({ view: { slots } }: BoundRequest, { items, mappings }: Assignment): AllocationRequest {
  return {
    items,
    // A suffix may be any word, even `__proto__`. `fromEntries` treats it like any other.
    mappings: Object.fromEntries(mappings.map(({ suffix, slots: serving }) => [suffix, namesOf(slots, serving)])),
  };
}

function namesOf(slots: Readonly<ProviderSlots>, serving: readonly number[]): string {
  return serving.length === 1 ? slots.uuid(serving[0]!) : serving.map((slot) => slots.uuid(slot)).join();
}
