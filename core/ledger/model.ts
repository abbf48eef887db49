import type { AggregateUuid, ConsumerUuid, ProviderUuid, ResourceClass, Trait } from "./ids.ts";

/**
 * The quantity of one resource class that one provider offers. Field for field the Placement API's inventory
 * record, `used` added: the ledger keeps it equal to the sum of the allocations (law 1).
 */
export interface Inventory {
  readonly total: number;
  readonly reserved: number;
  readonly minUnit: number;
  readonly maxUnit: number;
  readonly stepSize: number;
  readonly allocationRatio: number;
}

/**
 * How much of an inventory may be allocated at most: floor((total − reserved) × allocation_ratio), as upstream
 * Placement computes it. The one place where this formula stands in TypeScript; SQL has it once, too
 * (`ledger_capacity`). Kept within 2^53 − 1 both ways, since upstream allows ratios that overflow any integer.
 */
export function capacityOf({
  total,
  reserved,
  allocationRatio,
}: Pick<Inventory, "total" | "reserved" | "allocationRatio">): number {
  const capacity = Math.floor((total - reserved) * allocationRatio);
  return Math.max(Math.min(capacity, Number.MAX_SAFE_INTEGER), Number.MIN_SAFE_INTEGER);
}

/** A resource provider with all that it offers: a node of a provider tree. */
export interface Provider {
  readonly uuid: ProviderUuid;
  readonly name: string;
  /** `null` for the root of a tree. */
  readonly parent: ProviderUuid | null;
  readonly root: ProviderUuid;
  readonly generation: number;
  readonly inventories: ReadonlyMap<ResourceClass, Inventory & { readonly used: number }>;
  readonly traits: ReadonlySet<Trait>;
  readonly aggregates: ReadonlySet<AggregateUuid>;
}

/** Whose allocations they are. `type` is `INSTANCE`, `MIGRATION` or a name that a client chose (API 1.38). */
export interface ConsumerOwner {
  readonly projectId: string;
  readonly userId: string;
  readonly type: string;
}

export interface Consumer extends ConsumerOwner {
  readonly uuid: ConsumerUuid;
  readonly generation: number;
}

/** So much of one class of one provider. A consumer's allocation is a list of these, no (provider, class) twice. */
export interface AllocationItem {
  readonly provider: ProviderUuid;
  readonly resourceClass: ResourceClass;
  readonly amount: number;
}

export const CONSUMER_TYPE_INSTANCE = "INSTANCE";
export const CONSUMER_TYPE_MIGRATION = "MIGRATION";
