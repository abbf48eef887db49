import type { AllocationOutcome, Shortfall } from "./allocation-change.ts";

/** Every outcome in which a ledger refuses a change. */
export type AllocationRefusal = Exclude<AllocationOutcome, { readonly kind: "committed" }>;

/**
 * Why a change was refused, in words for a server's owner and an operator. Shortfalls are sorted, because the ledger's implementations find
 * them in different orders.
 */
export function describeAllocationRefusal(refusal: AllocationRefusal): string {
  switch (refusal.kind) {
    case "no-capacity":
      return refusal.shortfalls.map(describeShortfall).toSorted().join("; ");
    case "unknown-provider":
      return `provider ${refusal.provider} is gone`;
    case "unknown-inventory":
      return `provider ${refusal.provider} has no ${refusal.resourceClass}`;
    case "consumer-conflict":
      return refusal.actual === null
        ? `consumer ${refusal.consumer} does not exist`
        : `consumer ${refusal.consumer} already exists, at generation ${refusal.actual}`;
    default:
      return refusal satisfies never;
  }
}

function describeShortfall(shortfall: Shortfall): string {
  const { provider, resourceClass, reason, requested, used, limit } = shortfall;
  const what = `${requested} ${resourceClass} requested of provider ${provider}`;
  return reason === "capacity" ? `${what}, ${used} of ${limit} in use` : `${what}, its ${reason} is ${limit}`;
}
