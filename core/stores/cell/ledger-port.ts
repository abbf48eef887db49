import type { AllocationChange, AllocationOutcome } from "../../ledger/allocation-change.ts";
import type { ConsumerUuid } from "../../ledger/ids.ts";
import type { LedgerDump } from "../../ledger/ledger-dump.ts";
import type { AllocationItem } from "../../ledger/model.ts";
import type { ProviderTree, TreeOutcome } from "../../ledger/provider-tree.ts";

/**
 * The ledger of one cell, with two implementations (pure in memory, and Postgres). Every call is one batch in one transaction, except that
 * trees which take names or providers from each other get one transaction each. The answers come in the order of the elements. Each element
 * is applied completely or not at all, independently of the others' success, and the elements take effect in the given order.
 */
export interface Ledger {
  applyAllocations(changes: readonly AllocationChange[]): Promise<readonly AllocationOutcome[]>;
  putTrees(trees: readonly ProviderTree[]): Promise<readonly TreeOutcome[]>;
  allocationsOf(consumer: ConsumerUuid): Promise<readonly AllocationItem[]>;
  dump(): Promise<LedgerDump>;
}
