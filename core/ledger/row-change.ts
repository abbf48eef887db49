import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { HypervisorFacts } from "./hypervisor-facts.ts";
import type { AggregateUuid, ProviderUuid, ResourceClass, Trait } from "./ids.ts";
import type { Inventory } from "./model.ts";

/**
 * A change of one row that a ledger view holds. The pure ledger and the decoded replication stream of a cell's database share this
 * vocabulary. A change may be applied twice, and the later of two changes of one row wins.
 */
export type RowChange =
  | { readonly kind: "class-known" | "class-forgotten"; readonly resourceClass: ResourceClass }
  /** Inventories of the old name now have the new one. */
  | { readonly kind: "class-renamed"; readonly from: ResourceClass; readonly to: ResourceClass }
  /** The name exists, whether or not a provider has the trait. */
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
      /** Whether an agent reports for the host now. */
      readonly up: boolean;
      /** Whether an operator has closed the host for new servers. */
      readonly disabled: boolean;
      /** Undefined when it was not read, as by readers that follow only the ledger. */
      readonly hypervisor?: HypervisorFacts | undefined;
    }
  | { readonly kind: "host-removed"; readonly host: string }
  | ServerPut
  | { readonly kind: "server-removed"; readonly uuid: string }
  | MovePut
  | { readonly kind: "move-removed"; readonly uuid: string };

/** A move of a server from one host of the cell to another. A ledger view ignores it. */
export interface MovePut {
  readonly kind: "move-put";
  readonly uuid: string;
  readonly serverUuid: string;
  /** Null when the server was on no host. */
  readonly sourceHost: string | null;
  readonly destHost: string;
  readonly ended: boolean;
}

/** A server of the cell, with the fields that rules about hosts examine. A ledger view ignores it. */
export interface ServerPut {
  readonly kind: "server-put";
  readonly uuid: string;
  /** The host that holds the server's allocation, or null when the server holds nothing. */
  readonly host: string | null;
  readonly status: string;
  readonly taskState: string | null;
  /** Changes when the spec does. Null when the spec is unchanged, and then it may be unknown. */
  readonly specRevision: number | null;
  /** Decodes the spec, so it should be called only when needed. Throws when it is unknown. */
  readonly spec: () => ServerSpec;
}
