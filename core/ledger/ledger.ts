import type { AllocationChange, AllocationOutcome } from "./allocation-change.ts";
import { decideAllocations } from "./decide-allocations.ts";
import { decideTree } from "./decide-tree.ts";
import type { ConsumerUuid } from "./ids.ts";
import type { LedgerDump } from "./ledger-port.ts";
import {
  byProviderThenClass,
  copyLedger,
  dumpLedger,
  emptyLedger,
  evolve,
  type LedgerDecision,
  type LedgerState,
  rowsOf,
} from "./ledger-state.ts";
import type { AllocationItem } from "./model.ts";
import type { ProviderTree, TreeOutcome } from "./provider-tree.ts";
import type { RowChange } from "./row-change.ts";

/** A verdict, and the rows that it changed. */
export interface Applied<Outcome> {
  readonly outcome: Outcome;
  readonly rows: readonly RowChange[];
}

/**
 * The ledger's pure body: a state that decisions change one after the other. Synchronous, without clock or chance, so that
 * the same calls always lead to the same state: the oracle of tests, the ledger of simulations and of in-memory cells.
 */
export class PureLedger {
  #state: LedgerState = emptyLedger();

  /** Decides and, unless refused, applies. Cost: proportional to the change. */
  applyAllocations(change: AllocationChange): Applied<AllocationOutcome> {
    return this.#apply(decideAllocations(this.#state, change));
  }

  /** Decides and, unless refused, applies. Cost: proportional to the tree. */
  putTree(tree: ProviderTree): Applied<TreeOutcome> {
    return this.#apply(decideTree(this.#state, tree));
  }

  /** What the consumer holds, by provider and class; empty when it does not exist. */
  allocationsOf(consumer: ConsumerUuid): readonly AllocationItem[] {
    return [...(this.#state.consumers.get(consumer)?.items ?? [])].sort(byProviderThenClass);
  }

  /** Every row that a view needs to show the ledger as it is now. */
  rows(): readonly RowChange[] {
    return rowsOf(this.#state);
  }

  /** Returns what puts the ledger back to what it is now. */
  remember(): () => void {
    const kept = copyLedger(this.#state);
    return () => {
      this.#state = copyLedger(kept);
    };
  }

  dump(): LedgerDump {
    return dumpLedger(this.#state);
  }

  #apply<Outcome>(decision: LedgerDecision<Outcome>): Applied<Outcome> {
    evolve(this.#state, decision.delta);
    return { outcome: decision.outcome, rows: decision.delta.rows };
  }
}
