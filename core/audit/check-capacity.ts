import type { ProviderUuid, ResourceClass } from "../ledger/ids.ts";
import { type AllocationItem, capacityOf } from "../ledger/model.ts";
import type { CellFrame } from "./facts.ts";
import type { Violation } from "./violation.ts";

/** `allocated` may name a provider and class several times, as the allocations of several consumers do. */
type CapacityFacts = Pick<CellFrame, "cell" | "kept" | "providers"> & { readonly allocated: Iterable<AllocationItem> };

/**
 * Law 1: `used` is the sum of the allocations, and at most the capacity. The capacity of a host may fall below its use. This is a violation
 * only if a claim has added to the use.
 */
export function checkCapacity(facts: CapacityFacts): Violation[] {
  const violations: Violation[] = [];
  const allocated = sumAllocations(facts.allocated);
  const shrunk = new Map(
    facts.kept?.filter((one) => one.byReport).map((one) => [`${one.provider} ${one.resourceClass}`, one.used]),
  );
  for (const provider of facts.providers) {
    for (const [resourceClass, inventory] of provider.inventories) {
      const sum = allocated.take(provider.uuid, resourceClass);
      const capacity = capacityOf(inventory);
      // Nearly all inventories are in order, so texts are made only for the others.
      if (inventory.used === sum && sum <= capacity) continue;
      const where = `cell ${facts.cell}, ${resourceClass} of provider ${provider.name} (${provider.uuid})`;
      const subject = { kind: "inventory", cell: facts.cell, provider: provider.uuid, resourceClass } as const;
      if (inventory.used !== sum) {
        const proof = `used says ${inventory.used}, the allocations add up to ${sum}`;
        violations.push({ law: 1, what: "used is not the sum of the allocations", where, proof, subject });
      }
      if (sum > capacity && sum > (shrunk.get(`${provider.uuid} ${resourceClass}`) ?? 0)) {
        violations.push({ law: 1, what: "more than the capacity is allocated", where, proof: `${sum} of ${capacity}` });
      }
    }
  }
  for (const { provider, resourceClass, amount } of allocated.rest()) {
    violations.push({
      law: 1,
      what: "resources without an inventory are allocated",
      where: `cell ${facts.cell}, ${resourceClass} of provider ${provider}`,
      proof: `${amount} allocated, no such inventory`,
    });
  }
  return violations;
}

function sumAllocations(allocated: Iterable<AllocationItem>) {
  const sums = new Map<ProviderUuid, Map<ResourceClass, number>>();
  for (const { provider, resourceClass, amount } of allocated) {
    const ofProvider = sums.get(provider);
    if (ofProvider === undefined) sums.set(provider, new Map([[resourceClass, amount]]));
    else ofProvider.set(resourceClass, (ofProvider.get(resourceClass) ?? 0) + amount);
  }
  return {
    take(provider: ProviderUuid, resourceClass: ResourceClass): number {
      const ofProvider = sums.get(provider);
      const amount = ofProvider?.get(resourceClass) ?? 0;
      ofProvider?.delete(resourceClass);
      return amount;
    },
    rest: (): AllocationItem[] =>
      [...sums].flatMap(([provider, ofProvider]) =>
        Array.from(ofProvider, ([resourceClass, amount]) => ({ provider, resourceClass, amount })),
      ),
  };
}
