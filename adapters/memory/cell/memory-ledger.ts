import type { AllocationChange, AllocationOutcome } from "../../../core/ledger/allocation-change.ts";
import type { ConsumerUuid } from "../../../core/ledger/ids.ts";
import type { LedgerDump } from "../../../core/ledger/ledger-dump.ts";
import type { AllocationItem, Provider } from "../../../core/ledger/model.ts";
import type { ProviderTree, TreeOutcome } from "../../../core/ledger/provider-tree.ts";
import { PureLedger } from "../../../core/ledger/pure-ledger.ts";
import type { RowChange } from "../../../core/ledger/row-change.ts";
import type { Ledger } from "../../../core/stores/cell/ledger-port.ts";
import { MemoryOperatorsWord } from "./memory-operators-word.ts";

/** What a transaction on a memory ledger may do. Writes take effect at once; there is no way back, so check before. */
export interface MemoryTransaction {
  applyAllocations(change: AllocationChange): AllocationOutcome;
  /** Under the operators' word. */
  putTree(tree: ProviderTree): TreeOutcome;
  putTreeAsGiven(tree: ProviderTree): TreeOutcome;
  /** As they are at this step. */
  providers(): readonly Provider[];
  /** Adds a row of another table that views follow (hosts) to what the transaction's listeners are told. */
  emit(row: RowChange): void;
}

/** Told of each transaction that changed rows, after it, with its id; ids rise. It may not write to the ledger. */
export type TransactionListener = (xid: number, rows: readonly RowChange[]) => void;

/**
 * The in-memory twin of the ledger of a cell. A transaction is one synchronous call: nothing can come between its steps,
 * so that a store which keeps its own rows beside the ledger's writes both in one step.
 */
export class MemoryLedger implements Ledger {
  /** What operators said of its trees: each report is written under it. */
  readonly operators = new MemoryOperatorsWord();
  readonly #ledger = new PureLedger();
  readonly #listeners = new Set<TransactionListener>();
  #xid = 0;

  /** Runs a transaction and then tells the listeners of its rows, if it changed any. */
  transact<Result>(work: (transaction: MemoryTransaction, xid: number) => Result): Result {
    this.#xid += 1;
    const xid = this.#xid;
    const rows: RowChange[] = [];
    const keep = <Outcome>(applied: { readonly outcome: Outcome; readonly rows: readonly RowChange[] }): Outcome => {
      rows.push(...applied.rows);
      return applied.outcome;
    };
    try {
      return work(
        {
          applyAllocations: (change) => keep(this.#ledger.applyAllocations(change)),
          putTree: (tree) => keep(this.#ledger.putTree(this.operators.apply(tree))),
          putTreeAsGiven: (tree) => keep(this.#ledger.putTree(tree)),
          providers: () => this.#ledger.dump().providers,
          emit: (row) => rows.push(row),
        },
        xid,
      );
    } finally {
      if (rows.length > 0) for (const listener of [...this.#listeners]) listener(xid, rows);
    }
  }

  /** Returns what puts everything back to what it is now, of which no listener is told. */
  remember(): () => void {
    const putBack = [this.#ledger.remember(), this.operators.remember()];
    return () => {
      for (const part of putBack) part();
    };
  }

  /** Returns the unsubscriber. What happened before is in `rows()`. */
  onTransaction(listener: TransactionListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Every row that a view needs to show the ledger (hosts excluded) as it is now. */
  rows(): readonly RowChange[] {
    return this.#ledger.rows();
  }

  async applyAllocations(changes: readonly AllocationChange[]): Promise<readonly AllocationOutcome[]> {
    return this.transact((transaction) => changes.map((change) => transaction.applyAllocations(change)));
  }

  async putTrees(trees: readonly ProviderTree[]): Promise<readonly TreeOutcome[]> {
    return this.transact((transaction) => trees.map((tree) => transaction.putTree(tree)));
  }

  async allocationsOf(consumer: ConsumerUuid): Promise<readonly AllocationItem[]> {
    return this.#ledger.allocationsOf(consumer);
  }

  async dump(): Promise<LedgerDump> {
    return this.#ledger.dump();
  }
}
