import type { AllocationRequest, Selection } from "../../../proto/gen/berth/shared.ts";
import { CODE_GAVE_UP, CODE_NO_COMBINATION, type CompiledRequest } from "../../candidates/compiled-request.ts";
import { WORK_PER_TREE } from "../../candidates/search.ts";
import { type Assignment, searchTree } from "../../candidates/tree-search.ts";
import type { ProviderSlots } from "../../ledger/provider-slots.ts";

/** The preferred way in which a request fits on a tree that passed the sieve, or the refusal's code. */
export function placeOnTree(request: CompiledRequest, root: number): AllocationRequest | number {
  const search = searchTree(request, root, WORK_PER_TREE);
  const assignment = search.next();
  if (assignment) return wayOf(request, assignment);
  return search.gaveUp ? CODE_GAVE_UP : CODE_NO_COMBINATION;
}

/** Up to `most` ways, the preferred one first. */
export function waysOnTree(request: CompiledRequest, root: number, most: number): AllocationRequest[] {
  const search = searchTree(request, root, WORK_PER_TREE);
  const ways: AllocationRequest[] = [];
  while (ways.length < most) {
    const assignment = search.next();
    if (!assignment) break;
    ways.push(wayOf(request, assignment));
  }
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
