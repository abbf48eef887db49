import type { AllocationRequest, Selection } from "../../../proto/gen/berth/shared.ts";
import { CODE_GAVE_UP, CODE_NO_COMBINATION, type CompiledRequest } from "../../candidates/compiled-request.ts";
import { candidateOf, WORK_PER_TREE } from "../../candidates/search.ts";
import { type Assignment, assignmentsOfTree } from "../../candidates/tree-search.ts";
import { WorkBudget } from "../../candidates/work-budget.ts";

/** The preferred way in which a request fits on a tree that passed the sieve, or the refusal's code. */
export function placeOnTree(request: CompiledRequest, root: number): AllocationRequest | number {
  const budget = new WorkBudget(WORK_PER_TREE);
  const { done, value } = assignmentsOfTree(request, root, budget).next();
  if (!done) return wayOf(request, value);
  return budget.spent ? CODE_GAVE_UP : CODE_NO_COMBINATION;
}

/** Up to `most` ways, the preferred one first. */
export function waysOnTree(request: CompiledRequest, root: number, most: number): AllocationRequest[] {
  const ways: AllocationRequest[] = [];
  for (const assignment of assignmentsOfTree(request, root, new WorkBudget(WORK_PER_TREE))) {
    ways.push(wayOf(request, assignment));
    if (ways.length === most) break;
  }
  return ways;
}

export function selectionOf({ view }: CompiledRequest, root: number, allocation: AllocationRequest): Selection {
  const { hosts, slots } = view;
  return { host: hosts.nameOf(root) ?? "", rootProvider: slots.uuid(root), availabilityZone: "", allocation };
}

/** The wire's form of a way to fit. A group that is served by several providers names them with commas between. */
function wayOf({ view }: CompiledRequest, assignment: Assignment): AllocationRequest {
  const candidate = candidateOf(view, assignment);
  return {
    items: candidate.items.map((item) => ({ ...item })),
    mappings: Object.fromEntries([...candidate.mappings].map(([suffix, providers]) => [suffix, providers.join()])),
  };
}
