import type { ConsumerUuid, ProviderUuid, ResourceClass } from "./ids.ts";
import type { AllocationItem, ConsumerOwner } from "./model.ts";

/**
 * What a consumer must look like for a step to go ahead: `null` - it must not exist; a number - its generation;
 * `"any"` - no check (a cell's own task, which is fenced by its epoch instead).
 */
export type ExpectedGeneration = number | null | "any";

/**
 * One step of a change. Everything the ledger does to allocations is made of these two:
 * a claim replaces nothing by something, a release something by nothing, a swap one host's by another's; a move hands
 * all that `from` holds over to `to`, untouched (Nova's "migration-held allocation").
 */
export type AllocationStep =
  | {
      readonly kind: "replace";
      readonly consumer: ConsumerUuid;
      readonly expected: ExpectedGeneration;
      readonly owner: ConsumerOwner;
      /** Empty: the consumer gives back all it holds and ceases to exist. */
      readonly items: readonly AllocationItem[];
    }
  | {
      readonly kind: "move";
      readonly from: ConsumerUuid;
      /** Must not exist yet (its generation will be 1); its owner is `from`'s project and user, with `toType`. */
      readonly to: ConsumerUuid;
      readonly toType: string;
    };

/**
 * Steps that happen together or not at all. They are applied in order to a working copy; capacity is compared at
 * the end, for every (provider, class) whose use grew: what one step gives back another may take.
 */
export interface AllocationChange {
  readonly steps: readonly AllocationStep[];
  /**
   * Raise, once a change, the generations that the Placement API raises when it writes allocations: of the providers that
   * the items name, and of those that a consumer held which gives back all; a provider that a consumer merely moved away
   * from keeps its own. Berth's own claims raise none: they compare capacity, and a generation that moves with each claim
   * makes agents' tree reports collide.
   *
   * Source: `_set_allocations` of upstream's placement/objects/allocation.py. A move raises nothing: upstream has none.
   */
  readonly bumpProviders?: boolean;
}

/** Why one (provider, class) of a change could not be had. Every one is listed, not just the first. */
export interface Shortfall {
  readonly provider: ProviderUuid;
  readonly resourceClass: ResourceClass;
  /** `capacity`: no room; the three units: the amount itself is not allowed by the inventory. */
  readonly reason: "capacity" | "min_unit" | "max_unit" | "step_size";
  readonly requested: number;
  /** In use by others when the change was decided. */
  readonly used: number;
  /** For `capacity` the capacity, else the unit that was violated. */
  readonly limit: number;
}

export type AllocationOutcome =
  | {
      readonly kind: "committed";
      /** New generation of each consumer that a step named and that still exists. */
      readonly generations: ReadonlyMap<ConsumerUuid, number>;
    }
  | { readonly kind: "no-capacity"; readonly shortfalls: readonly Shortfall[] }
  | { readonly kind: "unknown-provider"; readonly provider: ProviderUuid }
  | { readonly kind: "unknown-inventory"; readonly provider: ProviderUuid; readonly resourceClass: ResourceClass }
  | {
      readonly kind: "consumer-conflict";
      readonly consumer: ConsumerUuid;
      readonly expected: ExpectedGeneration;
      /** `null`: there is no such consumer. */
      readonly actual: number | null;
    };

/** A first claim: the consumer must be new. */
export function claim(
  consumer: ConsumerUuid,
  owner: ConsumerOwner,
  items: readonly AllocationItem[],
): AllocationChange {
  return { steps: [{ kind: "replace", consumer, expected: null, owner, items }] };
}

/** Give back whatever the consumer holds; a consumer that is gone already is no error (the step may be repeated). */
export function release(consumer: ConsumerUuid, owner: ConsumerOwner): AllocationChange {
  return { steps: [{ kind: "replace", consumer, expected: "any", owner, items: [] }] };
}

/** Give back one host's allocation and claim another's, as one write: the hop to an alternate. */
export function swap(consumer: ConsumerUuid, owner: ConsumerOwner, items: readonly AllocationItem[]): AllocationChange {
  return { steps: [{ kind: "replace", consumer, expected: "any", owner, items }] };
}
