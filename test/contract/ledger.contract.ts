import { ledgerAllocationsContract } from "./ledger-allocations.contract.ts";
import { ledgerReportsContract } from "./ledger-reports.contract.ts";
import type { LedgerSubject } from "./ledger-scene.ts";
import { ledgerTreesContract } from "./ledger-trees.contract.ts";

/** The guarantees of every implementation of the ledger. */
export function ledgerContract(name: string, makeSubject: () => Promise<LedgerSubject>): void {
  ledgerAllocationsContract(name, makeSubject);
  ledgerTreesContract(name, makeSubject);
  ledgerReportsContract(name, makeSubject);
}
