import type { AggregateUuid, ProviderUuid, ResourceClass, Trait } from "./ids.ts";
import type { Inventory } from "./model.ts";

/**
 * A change of one row of what a ledger view holds: the vocabulary that the pure ledger's events and the decoded
 * replication stream of a cell's database share. Applying one twice does no harm; of two for one row the later wins.
 */
export type RowChange =
  | { readonly kind: "class-known" | "class-forgotten"; readonly resourceClass: ResourceClass }
  /** Inventories of the old name are now of the new one. */
  | { readonly kind: "class-renamed"; readonly from: ResourceClass; readonly to: ResourceClass }
  /** The name exists, whether or not a provider has it. */
  | { readonly kind: "trait-known" | "trait-forgotten"; readonly trait: Trait }
  | {
      readonly kind: "provider-put";
      readonly uuid: ProviderUuid;
      readonly name: string;
      readonly parent: ProviderUuid | null;
      readonly root: ProviderUuid;
      readonly generation: number;
    }
  | { readonly kind: "provider-removed"; readonly uuid: ProviderUuid }
  | {
      readonly kind: "inventory-put";
      readonly provider: ProviderUuid;
      readonly resourceClass: ResourceClass;
      readonly inventory: Inventory;
      readonly used: number;
    }
  | { readonly kind: "inventory-removed"; readonly provider: ProviderUuid; readonly resourceClass: ResourceClass }
  | { readonly kind: "trait-added" | "trait-removed"; readonly provider: ProviderUuid; readonly trait: Trait }
  | {
      readonly kind: "aggregate-added" | "aggregate-removed";
      readonly provider: ProviderUuid;
      readonly aggregate: AggregateUuid;
    }
  | {
      readonly kind: "host-put";
      readonly host: string;
      /** Root of the host's provider tree. */
      readonly provider: ProviderUuid;
      /** An agent reports for it now. */
      readonly up: boolean;
      /** An operator has closed it for new servers. */
      readonly disabled: boolean;
    }
  | { readonly kind: "host-removed"; readonly host: string };
