import type { AllocationChange, AllocationOutcome } from "./allocation-change.ts";
import type { ConsumerUuid } from "./ids.ts";
import type { AllocationItem, Consumer, Provider } from "./model.ts";
import type { ProviderTree, TreeOutcome } from "./provider-tree.ts";

/** Everything a ledger holds, sorted by uuid / name: what tests compare and the auditor reads. */
export interface LedgerDump {
  readonly providers: readonly Provider[];
  readonly consumers: readonly (Consumer & { readonly items: readonly AllocationItem[] })[];
}

/**
 * The ledger of one cell, either body (pure in memory, or Postgres). Every call is one batch: one transaction (trees that
 * take names or providers from each other: one a tree), an answer for each element in order, each element all or nothing and
 * independent of the others' success; the elements take effect in the order given.
 */
export interface Ledger {
  applyAllocations(changes: readonly AllocationChange[]): Promise<readonly AllocationOutcome[]>;
  putTrees(trees: readonly ProviderTree[]): Promise<readonly TreeOutcome[]>;
  allocationsOf(consumer: ConsumerUuid): Promise<readonly AllocationItem[]>;
  dump(): Promise<LedgerDump>;
}
