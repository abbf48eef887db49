import { compare } from "../../../core/ledger/ledger-state.ts";
import type { RowChange } from "../../../core/ledger/row-change.ts";
import type { ViewSource } from "../../../core/stores/cell/view-source.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { CellState, type CellTransaction, type TaskRow } from "./cell-state.ts";
import { tableFacts } from "./memory-audit.ts";
import { MemoryHostAdminStore } from "./memory-host-admin-store.ts";
import { hostChange } from "./memory-host-steps.ts";
import type { MemoryLedger, TransactionListener } from "./memory-ledger.ts";
import { MemoryQuarantine } from "./memory-quarantine.ts";

/**
 * The tables and the ledger of a cell in memory, with their transactions, their followers and their backups. They live as long as this
 * object. All times come from the clock. Followers hear of each transaction before its caller does, so as a `ViewSource` it is never behind.
 */
export class MemoryCellTables implements ViewSource {
  readonly ready = true;
  protected readonly clock: Clock;
  protected readonly ledger: MemoryLedger;
  protected readonly cell = new CellState();
  /** The guests that are kept although the cell does not want them, as conductors and operators use them. */
  readonly quarantine: MemoryQuarantine;
  readonly #appliedHandlers = new Set<(xid: number) => void>();
  readonly #followers = new Set<TransactionListener>();

  constructor(deps: { readonly clock: Clock; readonly ledger: MemoryLedger }) {
    this.clock = deps.clock;
    this.ledger = deps.ledger;
    this.quarantine = new MemoryQuarantine({
      cell: this.cell,
      clock: deps.clock,
      disable: (host, reason) => this.hostAdmin().setDisabled(host, true, reason),
    });
    this.ledger.onTransaction((xid, rows) => {
      for (const follower of [...this.#followers]) follower(xid, rows);
      for (const handler of [...this.#appliedHandlers]) handler(xid);
    });
  }

  /**
   * Calls the listener at once with all rows that a ledger view shows, as transaction 0, and then with the rows of each transaction.
   * Returns a function that unsubscribes.
   */
  follow(listener: TransactionListener): () => void {
    const hosts = Array.from(this.cell.hosts.values(), hostChange);
    const { servers, migrations } = this.cell;
    listener(0, [...this.ledger.rows(), ...hosts, ...servers.rows(), ...migrations.rows()] satisfies RowChange[]);
    this.#followers.add(listener);
    return () => this.#followers.delete(listener);
  }

  async waitUntilSeen(): Promise<boolean> {
    return true;
  }

  onApplied(handler: (xid: number) => void): () => void {
    this.#appliedHandlers.add(handler);
    return () => this.#appliedHandlers.delete(handler);
  }

  /** Returns a function that restores the present state, as restoring a backup does. Followers have to start again after it. */
  remember(): () => void {
    const putBack = [this.cell, this.ledger, this.quarantine].map((part) => part.remember());
    return () => {
      for (const part of putBack) part();
    };
  }

  /** The operators' part of the store, on the same rows. */
  hostAdmin(): MemoryHostAdminStore {
    return new MemoryHostAdminStore(this.cell, this.ledger, this.clock);
  }

  /** Every task that was ever stored, sorted by id, for comparisons of stores. */
  tasks(): readonly Readonly<TaskRow>[] {
    return [...this.cell.tasks.values()].sort((a, b) => compare(a.id, b.id));
  }

  /** The facts about the tables that an audit checks, as they are now. */
  facts(): ReturnType<typeof tableFacts> {
    return tableFacts(this.cell, this.clock.now());
  }

  /** The server of each open task. */
  serversWithOpenTasks(): readonly string[] {
    return Array.from(this.cell.running, ({ serverUuid }) => serverUuid);
  }

  /** Runs one transaction on the rows and the ledger together, and passes the changes on to the followers. */
  protected step<Result>(run: (tx: CellTransaction) => Result): Result {
    return this.ledger.transact((transaction, xid) => {
      const result = run({ ...transaction, cell: this.cell, xid, nowMs: this.clock.now() });
      const { servers, migrations } = this.cell;
      for (const change of [...servers.takeChanges(), ...migrations.takeChanges()]) transaction.emit(change);
      return result;
    });
  }
}
