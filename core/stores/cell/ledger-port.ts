import type { AllocationChange, AllocationOutcome } from "../../ledger/allocation-change.ts";
import type { ConsumerUuid } from "../../ledger/ids.ts";
import type { LedgerDump } from "../../ledger/ledger-dump.ts";
import type { AllocationItem } from "../../ledger/model.ts";
import type { ProviderTree, TreeOutcome } from "../../ledger/provider-tree.ts";
import type { ReportOutcome } from "../../ledger/report-outcome.ts";

/**
 * The ledger of one cell, with two implementations (pure in memory, and Postgres). Every call is one batch in one transaction, except that
 * trees which take names or providers from each other get one transaction each. The answers come in the order of the elements. Each element
 * is applied completely or not at all, independently of the others' success, and the elements take effect in the given order.
 */
export interface Ledger {
  applyAllocations(changes: readonly AllocationChange[]): Promise<readonly AllocationOutcome[]>;
  /** Replaces trees by these, whatever their previous authors. */
  putTrees(trees: readonly ProviderTree[]): Promise<readonly TreeOutcome[]>;
  /**
   * Merges the agents' reports of their hosts, with the operators' settings applied. Resources of others stay, and so do resources that
   * servers use (`mergeReport`). Where a class is in use that the tree now offers on other providers, the allocations move there together with the tree
   * (`planReshape`), or nothing changes.
   */
  reportTrees(reports: readonly ProviderTree[]): Promise<readonly ReportOutcome[]>;
  allocationsOf(consumer: ConsumerUuid): Promise<readonly AllocationItem[]>;
  dump(): Promise<LedgerDump>;
}
