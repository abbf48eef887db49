import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { HypervisorFacts } from "../cell/hypervisor-facts.ts";
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
      /** Undefined: not told, as by those who follow the ledger alone. */
      readonly hypervisor?: HypervisorFacts | undefined;
    }
  | { readonly kind: "host-removed"; readonly host: string }
  | ServerPut
  | { readonly kind: "server-removed"; readonly uuid: string }
  | MovePut
  | { readonly kind: "move-removed"; readonly uuid: string };

/** A move of a server from one host of the cell to another. A ledger view passes it over. */
export interface MovePut {
  readonly kind: "move-put";
  readonly uuid: string;
  readonly serverUuid: string;
  /** Null: the server was on no host. */
  readonly sourceHost: string | null;
  readonly destHost: string;
  readonly ended: boolean;
}

/** A server of the cell, as far as rules about hosts look at the servers there. A ledger view passes it over. */
export interface ServerPut {
  readonly kind: "server-put";
  readonly uuid: string;
  /** The host that holds its allocation; null: it holds nothing. */
  readonly host: string | null;
  readonly status: string;
  readonly taskState: string | null;
  /** Differs when the spec does; null: it is as it was. */
  readonly specRevision: number | null;
  /** Decodes it: not to be asked for without need. */
  readonly spec: () => ServerSpec;
}
