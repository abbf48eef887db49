import type { ConsumerUuid, ProviderUuid, ResourceClass } from "./ids.ts";
import type { AllocationItem, ConsumerOwner } from "./model.ts";

/**
 * The required state of a consumer for a step to be applied. `null`: it must not exist. A number: it must have this generation. `"any"`:
 * there is no check, for a cell's own task, which is fenced by its epoch instead.
 */
export type ExpectedGeneration = number | null | "any";

/**
 * One step of a change. Every change of allocations consists of these two kinds. A `replace` step is a claim (from nothing), a release (to
 * nothing) or a swap (from one host to another). A `move` step transfers everything that `from` holds to `to`, unchanged (Nova's
 * "migration-held allocation").
 */
export type AllocationStep =
  | {
      readonly kind: "replace";
      readonly consumer: ConsumerUuid;
      readonly expected: ExpectedGeneration;
      readonly owner: ConsumerOwner;
      /** When empty, the consumer releases everything and ceases to exist. */
      readonly items: readonly AllocationItem[];
    }
  | {
      readonly kind: "move";
      readonly from: ConsumerUuid;
      /**
       * This consumer must not exist yet. Its generation becomes 1, and its owner has the project and user of `from` and the type `toType`.
       */
      readonly to: ConsumerUuid;
      readonly toType: string;
    };

/**
 * Steps that are applied together or not at all. They are applied in order to a working copy. Capacity is compared at the end for every
 * (provider, class) whose use grew, so a later step may take what an earlier one released.
 */
export interface AllocationChange {
  readonly steps: readonly AllocationStep[];
  /**
   * Raises, once for each change, the generations that the Placement API raises when it writes allocations. These belong to the providers
   * that the items name, and to those of a consumer that releases everything. A provider that a consumer merely left keeps its generation.
   * Berth's own claims raise none, because they compare capacity. A generation that changed with each claim would make agents' tree reports
   * collide.
   *
   * Source: `_set_allocations` of upstream's placement/objects/allocation.py. A `move` step raises none, since upstream has no such step.
   */
  readonly bumpProviders?: boolean;
}

/** Why a change could not get one (provider, class). A refusal lists all shortfalls, not just the first. */
export interface Shortfall {
  readonly provider: ProviderUuid;
  readonly resourceClass: ResourceClass;
  /** `capacity`: too little is free. The other three: the inventory's unit forbids the amount itself. */
  readonly reason: "capacity" | "min_unit" | "max_unit" | "step_size";
  readonly requested: number;
  /** The amount in use by other consumers when the change was decided. */
  readonly used: number;
  /** The capacity for `capacity`, and otherwise the unit that was violated. */
  readonly limit: number;
}

export type AllocationOutcome =
  | {
      readonly kind: "committed";
      /** New generations of the consumers that the steps name and that still exist. */
      readonly generations: ReadonlyMap<ConsumerUuid, number>;
    }
  | { readonly kind: "no-capacity"; readonly shortfalls: readonly Shortfall[] }
  | { readonly kind: "unknown-provider"; readonly provider: ProviderUuid }
  | { readonly kind: "unknown-inventory"; readonly provider: ProviderUuid; readonly resourceClass: ResourceClass }
  | {
      readonly kind: "consumer-conflict";
      readonly consumer: ConsumerUuid;
      readonly expected: ExpectedGeneration;
      /** `null` when there is no such consumer. */
      readonly actual: number | null;
    };

/** A first claim, for which the consumer must be new. */
export function claim(
  consumer: ConsumerUuid,
  owner: ConsumerOwner,
  items: readonly AllocationItem[],
): AllocationChange {
  return { steps: [{ kind: "replace", consumer, expected: null, owner, items }] };
}

/** Releases everything that the consumer holds. A consumer that no longer exists is not an error, so the step can be repeated. */
export function release(consumer: ConsumerUuid, owner: ConsumerOwner): AllocationChange {
  return { steps: [{ kind: "replace", consumer, expected: "any", owner, items: [] }] };
}

/** Releases one host's allocation and claims another's in one write, for the hop to an alternate. */
export function swap(consumer: ConsumerUuid, owner: ConsumerOwner, items: readonly AllocationItem[]): AllocationChange {
  return { steps: [{ kind: "replace", consumer, expected: "any", owner, items }] };
}
