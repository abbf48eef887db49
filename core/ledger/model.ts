import type { AggregateUuid, ConsumerUuid, ProviderUuid, ResourceClass, Trait } from "./ids.ts";

/**
 * The quantity of one resource class that one provider offers. It has the fields of the Placement API's inventory record. The ledger adds
 * `used` and keeps it equal to the sum of the allocations (law 1).
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
 * The most that may be allocated of an inventory: floor((total − reserved) × allocation_ratio), as upstream Placement computes it. This is
 * the formula's only place in TypeScript. In SQL its only place is `ledger_capacity`. The result is limited to ±(2^53 − 1), since upstream
 * allows ratios that overflow any integer.
 */
export function capacityOf({
  total,
  reserved,
  allocationRatio,
}: Pick<Inventory, "total" | "reserved" | "allocationRatio">): number {
  const capacity = Math.floor((total - reserved) * allocationRatio);
  return Math.max(Math.min(capacity, Number.MAX_SAFE_INTEGER), Number.MIN_SAFE_INTEGER);
}

/**
 * How many traits a host may report of one provider, or a request of the Placement API set. OpenStack has some 300 standard traits. Whatever follows a
 * cell keeps the traits of all providers in memory.
 */
export const TRAITS_MAX = 1_000;

/** A resource provider with everything that it offers. It is a node of a provider tree. */
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

/** The owner of a consumer. `type` is `INSTANCE`, `MIGRATION` or a name that a client chose (API 1.38). */
export interface ConsumerOwner {
  readonly projectId: string;
  readonly userId: string;
  readonly type: string;
}

export interface Consumer extends ConsumerOwner {
  readonly uuid: ConsumerUuid;
  readonly generation: number;
}

/** An amount of one class of one provider. A consumer's allocation is a list of these, in which no (provider, class) occurs twice. */
export interface AllocationItem {
  readonly provider: ProviderUuid;
  readonly resourceClass: ResourceClass;
  readonly amount: number;
}

export const CONSUMER_TYPE_INSTANCE = "INSTANCE";
export const CONSUMER_TYPE_MIGRATION = "MIGRATION";
