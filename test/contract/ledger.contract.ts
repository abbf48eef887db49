import { ledgerAllocationsContract } from "./ledger-allocations.contract.ts";
import type { LedgerSubject } from "./ledger-scene.ts";
import { ledgerTreesContract } from "./ledger-trees.contract.ts";

/** What every body of the ledger does. */
export function ledgerContract(name: string, makeSubject: () => Promise<LedgerSubject>): void {
  ledgerAllocationsContract(name, makeSubject);
  ledgerTreesContract(name, makeSubject);
}
