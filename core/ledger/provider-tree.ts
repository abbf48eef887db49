import type { AggregateUuid, ProviderUuid, ResourceClass, Trait } from "./ids.ts";
import type { Inventory } from "./model.ts";

/** One provider of a tree as its host reports it. */
export interface ProviderSpec {
  readonly uuid: ProviderUuid;
  readonly name: string;
  readonly parent: ProviderUuid | null;
  /**
   * `null`: the provider must be new. A number: it must have this generation. `"any"`: the reporter owns the provider and overwrites it.
   */
  readonly expected: number | null | "any";
  readonly inventories: ReadonlyMap<ResourceClass, Inventory>;
  readonly traits: ReadonlySet<Trait>;
  /** Classes of its inventories whose ratios only count when the inventory is first stored. Only reports of agents have them. */
  readonly initialRatios?: ReadonlySet<ResourceClass>;
  /** `undefined` leaves the provider's aggregates unchanged, because operators own them, not agents. */
  readonly aggregates?: ReadonlySet<AggregateUuid>;
}

/**
 * A whole tree, with the root first and parents before children. Providers of the stored tree that the list does not contain are removed. A
 * report that equals the stored tree writes nothing and raises no generation.
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
  /** A provider or an inventory that the report leaves out still has allocations. `resourceClass` is null for a provider. */
  | { readonly kind: "in-use"; readonly provider: ProviderUuid; readonly resourceClass: ResourceClass | null }
  | { readonly kind: "name-taken"; readonly provider: ProviderUuid; readonly name: string }
  /**
   * The list is not a tree: the root is not first, a parent does not precede its child, a UUID or a name occurs twice, or a UUID belongs to
   * another tree.
   */
  | { readonly kind: "malformed"; readonly provider: ProviderUuid; readonly why: string };
