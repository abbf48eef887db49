import type { AggregateUuid, ProviderUuid, ResourceClass, Trait } from "./ids.ts";
import type { Inventory } from "./model.ts";

/** One provider of a tree as its host reports it. */
export interface ProviderSpec {
  readonly uuid: ProviderUuid;
  readonly name: string;
  readonly parent: ProviderUuid | null;
  /** `null`: must be new; a number: must be at that generation; `"any"`: the reporter owns it and overwrites. */
  readonly expected: number | null | "any";
  readonly inventories: ReadonlyMap<ResourceClass, Inventory>;
  readonly traits: ReadonlySet<Trait>;
  /** `undefined`: leave its aggregates as they are (operators own them, not agents). */
  readonly aggregates?: ReadonlySet<AggregateUuid>;
}

/**
 * A whole tree, parents before children, the root first. What the ledger holds of that tree and the list leaves out
 * is removed. A report equal to what is there writes nothing and raises no generation.
 */
export interface ProviderTree {
  readonly root: ProviderUuid;
  readonly providers: readonly ProviderSpec[];
}

export type TreeOutcome =
  | { readonly kind: "replaced" | "unchanged"; readonly generations: ReadonlyMap<ProviderUuid, number> }
  | {
      readonly kind: "generation-conflict";
      readonly provider: ProviderUuid;
      readonly expected: number | null;
      readonly actual: number | null;
    }
  /** A provider or an inventory that the report leaves out still has allocations (`resourceClass` null: the provider). */
  | { readonly kind: "in-use"; readonly provider: ProviderUuid; readonly resourceClass: ResourceClass | null }
  | { readonly kind: "name-taken"; readonly provider: ProviderUuid; readonly name: string }
  /** The list is no tree: no root first, a parent that is not before its child, a uuid or a name twice, or a uuid of another tree. */
  | { readonly kind: "malformed"; readonly provider: ProviderUuid; readonly why: string };
