import type { AllocationChange, AllocationOutcome } from "../../../core/ledger/allocation-change.ts";
import type { ConsumerUuid, ProviderUuid } from "../../../core/ledger/ids.ts";
import type { LedgerDump } from "../../../core/ledger/ledger-dump.ts";
import type { AllocationItem, Provider } from "../../../core/ledger/model.ts";
import type { ProviderTree, TreeOutcome } from "../../../core/ledger/provider-tree.ts";
import { PureLedger } from "../../../core/ledger/pure-ledger.ts";
import type { ReportOutcome } from "../../../core/ledger/report-outcome.ts";
import type { RowChange } from "../../../core/ledger/row-change.ts";
import type { Ledger } from "../../../core/stores/cell/ledger-port.ts";
import { MemoryOperatorsWord } from "./memory-operators-word.ts";
import { MemoryTreeReports } from "./memory-tree-reports.ts";

/** The twin of a database that refuses a transaction because its disk is full. Nothing was written. */
export class DiskFullError extends Error {
  constructor() {
    super("could not extend file: No space left on device");
    this.name = "DiskFullError";
  }
}

/** The writes and reads of a transaction on a memory ledger. Writes take effect at once and cannot be undone, so check before writing. */
export interface MemoryTransaction {
  applyAllocations(change: AllocationChange): AllocationOutcome;
  /** Writes the tree with the operators' settings applied. */
  putTree(tree: ProviderTree): TreeOutcome;
  putTreeAsGiven(tree: ProviderTree): TreeOutcome;
  /** Removes a whole tree of which nothing is allocated. */
  removeTree(root: ProviderUuid): void;
  reportTree(report: ProviderTree): ReportOutcome;
  /** The providers as they are at this step. */
  providers(): readonly Provider[];
  /** Adds a row of another table that views follow (hosts) to the rows that the transaction's listeners get. */
  emit(row: RowChange): void;
}

/** Called after each transaction that changed rows, with its id. Ids rise. The listener must not write to the ledger. */
export type TransactionListener = (xid: number, rows: readonly RowChange[]) => void;

/**
 * The in-memory twin of a cell's ledger. A transaction is one synchronous call, so nothing can come between its steps, and a store that
 * keeps its own rows beside the ledger's writes both in one step.
 */
export class MemoryLedger implements Ledger {
  /** The operators' settings for its trees. Each reported tree is written with them applied. */
  readonly operators = new MemoryOperatorsWord();
  readonly #ledger = new PureLedger();
  /** The agents' reports of its trees. */
  readonly reports = new MemoryTreeReports({ ledger: this.#ledger, operators: this.operators });
  readonly #listeners = new Set<TransactionListener>();
  /** Whether the next transaction finds no space on the disk. */
  isFull: () => boolean = () => false;
  #xid = 0;

  /** Runs a transaction, and then calls the listeners with its rows if it changed any. Throws `DiskFullError`. */
  transact<Result>(work: (transaction: MemoryTransaction, xid: number) => Result): Result {
    if (this.isFull()) throw new DiskFullError();
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
          removeTree: (root) => keep(this.#ledger.removeTree(root)),
          reportTree: (report) => keep(this.reports.report(report)),
          providers: () => this.#ledger.dump().providers,
          emit: (row) => rows.push(row),
        },
        xid,
      );
    } finally {
      if (rows.length > 0) for (const listener of [...this.#listeners]) listener(xid, rows);
    }
  }

  /** Returns a function that restores everything as it is now. Listeners are not told. */
  remember(): () => void {
    const putBack = [this.#ledger.remember(), this.operators.remember(), this.reports.remember()];
    return () => {
      for (const part of putBack) part();
    };
  }

  /** Returns a function that unsubscribes. Earlier changes are included in `rows()`. */
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

  async reportTrees(reports: readonly ProviderTree[]): Promise<readonly ReportOutcome[]> {
    return this.transact((transaction) => reports.map((report) => transaction.reportTree(report)));
  }

  async allocationsOf(consumer: ConsumerUuid): Promise<readonly AllocationItem[]> {
    return this.#ledger.allocationsOf(consumer);
  }

  async dump(): Promise<LedgerDump> {
    return this.#ledger.dump();
  }

  /** The same as `dump` without order and copies. Only for a caller that has read it before the ledger changes again. */
  present(): LedgerDump {
    return this.#ledger.present();
  }
}
