import type { AllocationChange, AllocationOutcome } from "../../ledger/allocation-change.ts";
import type { AggregateUuid, ConsumerUuid, ProviderUuid, ResourceClass, Trait } from "../../ledger/ids.ts";
import type { AllocationItem, Consumer, Inventory } from "../../ledger/model.ts";

/**
 * The functions of one cell's ledger that the Placement API needs in addition to claims: it reads and writes every resource of that API one at a time, with
 * upstream's rules on generations. Times are milliseconds since the epoch and become `last-modified`.
 */
export interface PlacementStore {
  // --- providers
  provider(uuid: ProviderUuid): Promise<ProviderRow | null>;
  providers(filter: ProviderFilter): Promise<readonly ProviderRow[]>;
  /** `home` names the cell for a new root when there are several cells. A child follows its parent. */
  createProvider(provider: NewProvider, home?: string): Promise<CreateProviderOutcome>;
  /** An undefined `parent` leaves the parent unchanged. `reparent` permits changing a parent that is set (API 1.37). */
  updateProvider(
    uuid: ProviderUuid,
    change: { readonly name: string; readonly parent?: ProviderUuid | null; readonly reparent: boolean },
  ): Promise<UpdateProviderOutcome>;
  deleteProvider(uuid: ProviderUuid): Promise<"deleted" | "not-found" | "has-allocations" | "has-children">;

  // --- inventories
  inventories(uuid: ProviderUuid): Promise<Dated<ReadonlyMap<ResourceClass, InventoryRow>> | null>;
  /** Replaces all inventories of the provider. */
  setInventories(
    uuid: ProviderUuid,
    expected: number,
    inventories: ReadonlyMap<ResourceClass, Inventory>,
  ): Promise<InventoryOutcome>;
  /**
   * Creates one inventory, which must not exist yet (`create`), or updates one, which must exist. With `expected` undefined the generation
   * is not checked (create).
   */
  putInventory(
    uuid: ProviderUuid,
    expected: number | undefined,
    resourceClass: ResourceClass,
    inventory: Inventory,
    mode: "create" | "update",
  ): Promise<InventoryOutcome>;
  /** Removes the inventory of one class, or all inventories when `resourceClass` is null. */
  deleteInventory(uuid: ProviderUuid, resourceClass: ResourceClass | null): Promise<InventoryOutcome>;

  // --- traits of a provider, aggregates of a provider
  traits(uuid: ProviderUuid): Promise<Dated<readonly Trait[]> | null>;
  setTraits(uuid: ProviderUuid, expected: number | undefined, traits: readonly Trait[]): Promise<SetOutcome<Trait>>;
  aggregates(uuid: ProviderUuid): Promise<Dated<readonly AggregateUuid[]> | null>;
  /** With `expected` undefined the generation is neither checked nor raised (API before 1.19). */
  setAggregates(
    uuid: ProviderUuid,
    expected: number | undefined,
    aggregates: readonly AggregateUuid[],
  ): Promise<SetOutcome<never>>;

  // --- names
  resourceClasses(): Promise<readonly NameRow<ResourceClass>[]>;
  createResourceClass(name: ResourceClass): Promise<"created" | "exists">;
  renameResourceClass(from: ResourceClass, to: ResourceClass): Promise<"renamed" | "not-found" | "exists">;
  deleteResourceClass(name: ResourceClass): Promise<"deleted" | "not-found" | "in-use">;
  /** `associated` selects only the traits that some provider has (true) or that no provider has (false). */
  allTraits(filter: { readonly associated?: boolean }): Promise<readonly NameRow<Trait>[]>;
  createTrait(name: Trait): Promise<"created" | "exists">;
  deleteTrait(name: Trait): Promise<"deleted" | "not-found" | "in-use">;

  // --- consumers and their allocations
  consumer(uuid: ConsumerUuid): Promise<ConsumerAllocations | null>;
  consumers(uuids: readonly ConsumerUuid[]): Promise<readonly ConsumerAllocations[]>;
  allocationsOfProvider(
    uuid: ProviderUuid,
  ): Promise<{ readonly provider: ProviderRow; readonly allocations: readonly ProviderAllocation[] } | null>;
  /** Runs in one batch with other callers' changes, with the same outcome as if it had run alone. */
  applyAllocations(change: AllocationChange): Promise<PlacementChangeOutcome>;
  reshape(reshape: Reshape): Promise<ReshapeOutcome>;

  // --- usages
  usagesOfProvider(
    uuid: ProviderUuid,
  ): Promise<{ readonly provider: ProviderRow; readonly usages: ReadonlyMap<ResourceClass, number> } | null>;
  usagesOfProject(projectId: string, userId: string | null): Promise<readonly ConsumerTypeUsage[]>;
}

export interface ProviderRow {
  readonly uuid: ProviderUuid;
  readonly name: string;
  readonly generation: number;
  readonly parent: ProviderUuid | null;
  readonly root: ProviderUuid;
  readonly updatedAtMs: number;
}

export interface NewProvider {
  readonly uuid: ProviderUuid;
  readonly name: string;
  readonly parent: ProviderUuid | null;
}

/** Rules combine by AND. An outer list means AND, an inner list means OR. */
export interface ProviderFilter {
  readonly name?: string;
  readonly uuids?: readonly ProviderUuid[];
  /** Selects the providers of the tree that this provider belongs to. */
  readonly inTree?: ProviderUuid;
  readonly memberOf?: readonly (readonly AggregateUuid[])[];
  readonly forbiddenAggregates?: readonly AggregateUuid[];
  readonly requiredTraits?: readonly (readonly Trait[])[];
  readonly forbiddenTraits?: readonly Trait[];
  /** Selects providers that have room for each of these amounts themselves, with unit rules considered. */
  readonly resources?: ReadonlyMap<ResourceClass, number>;
}

export interface Dated<Value> {
  readonly value: Value;
  readonly generation: number;
  readonly updatedAtMs: number;
}
export type InventoryRow = Inventory & { readonly used: number; readonly updatedAtMs: number };
export interface NameRow<Name> {
  readonly name: Name;
  readonly updatedAtMs: number;
}

export type CreateProviderOutcome =
  | { readonly kind: "created"; readonly provider: ProviderRow }
  | { readonly kind: "uuid-taken" | "name-taken" | "unknown-parent" | "own-parent" }
  | { readonly kind: "unknown-cell"; readonly cell: string; readonly known: readonly string[] };
export type UpdateProviderOutcome =
  | { readonly kind: "updated"; readonly provider: ProviderRow }
  | {
      readonly kind:
        | "not-found"
        | "name-taken"
        | "unknown-parent"
        | "reparent-refused"
        | "unparent-refused"
        | "loop"
        /** The parent is in another cell, and a tree cannot span cells. */
        | "parent-elsewhere";
    };

export type InventoryOutcome =
  | { readonly kind: "written"; readonly generation: number; readonly updatedAtMs: number }
  | { readonly kind: "not-found" }
  | { readonly kind: "generation-conflict"; readonly actual: number }
  | { readonly kind: "in-use"; readonly resourceClasses: readonly ResourceClass[] }
  | { readonly kind: "unknown-class"; readonly resourceClass: ResourceClass }
  | { readonly kind: "exists" | "no-inventory"; readonly resourceClass: ResourceClass };

export type SetOutcome<Name> =
  | { readonly kind: "written"; readonly generation: number; readonly updatedAtMs: number }
  | { readonly kind: "not-found" }
  | { readonly kind: "generation-conflict"; readonly actual: number }
  | { readonly kind: "unknown-names"; readonly names: readonly Name[] };

/** A consumer that was created before API 1.38 has the type `unknown`. */
export interface ConsumerAllocations extends Consumer {
  readonly items: readonly (AllocationItem & { readonly providerGeneration: number })[];
  readonly updatedAtMs: number;
}
export interface ProviderAllocation {
  readonly consumer: ConsumerUuid;
  readonly consumerGeneration: number;
  readonly resourceClass: ResourceClass;
  readonly amount: number;
  readonly updatedAtMs: number;
}
export interface ConsumerTypeUsage {
  readonly type: string;
  readonly consumerCount: number;
  readonly usages: ReadonlyMap<ResourceClass, number>;
}

/** `several-cells`: a change cannot span two cells, and all of a consumer's allocations are in one cell. */
export type PlacementChangeOutcome =
  | AllocationOutcome
  | { readonly kind: "several-cells"; readonly cells: readonly string[] }
  /** The consumer is a server that a task of the cell works on, or a move of the cell that holds allocations. `what` says which. */
  | { readonly kind: "under-way"; readonly consumer: ConsumerUuid; readonly what: string };

/** Replaces inventories of several providers and allocations of several consumers in one step (API 1.30). */
export interface Reshape {
  readonly inventories: readonly {
    readonly provider: ProviderUuid;
    readonly expected: number;
    readonly inventories: ReadonlyMap<ResourceClass, Inventory>;
  }[];
  readonly change: AllocationChange;
}
export type ReshapeOutcome =
  | { readonly kind: "reshaped" }
  | { readonly kind: "unknown-provider"; readonly provider: ProviderUuid }
  | { readonly kind: "unknown-class"; readonly resourceClass: ResourceClass }
  | {
      readonly kind: "generation-conflict";
      readonly provider: ProviderUuid;
      readonly actual: number;
      readonly given: number;
    }
  | { readonly kind: "in-use"; readonly provider: ProviderUuid; readonly resourceClasses: readonly ResourceClass[] }
  | { readonly kind: "refused"; readonly outcome: Exclude<PlacementChangeOutcome, { kind: "committed" }> };
