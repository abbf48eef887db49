import { setTimeout as delay } from "node:timers/promises";
import { HistoryFollower, type HistoryTransaction } from "../adapters/postgres/audit/history-follower.ts";
import { nameInventory } from "../adapters/postgres/audit/name-inventory.ts";
import { CapacityHistory, type HistoryBreach } from "../core/audit/capacity-history.ts";
import type { FoundViolation } from "../core/audit/violation.ts";
import { systemClock } from "../runtime/clock.ts";
import { DeadlineError, withDeadline } from "../runtime/deadline.ts";
import type { AuditedCell } from "./read-cloud.ts";

export interface HistoryEvents {
  /** Reports a violation that one transaction of the log proves, so that no second reading is needed. */
  broken(violation: FoundViolation): void;
  followed(cell: string): void;
  /** Reports that transactions are not checked until the history is `followed` again. */
  lost(cell: string, reason: string): void;
}

const RETRY_MS = 1_000;
const CATCH_UP_MS_MAX = 10_000;

/**
 * Follows the commits in one cell's ledger and checks law 1 at every committed moment. Modes: opening (a slot, a snapshot) → following. A
 * loss is followed by a pause and another opening. `close` ends the watch in each mode.
 */
export class CellHistoryWatch {
  readonly #cell: AuditedCell;
  readonly #events: HistoryEvents;
  readonly #closing = new AbortController();
  readonly #naming = new Set<Promise<void>>();
  #follower: HistoryFollower | null = null;
  #running: Promise<void> = Promise.resolve();
  #transactions = 0;

  constructor(cell: AuditedCell, events: HistoryEvents) {
    this.#cell = cell;
    this.#events = events;
  }

  /** Number of transactions checked. */
  get transactions(): number {
    return this.#transactions;
  }

  /** Resolves when the history is followed for the first time, or when that failed. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#running = this.#run(resolve);
    });
  }

  /** Resolves when everything committed before the call has been checked, as far as the history is followed. */
  async catchUp(): Promise<void> {
    const follower = this.#follower;
    if (follower !== null)
      await withDeadline(follower.catchUp(), CATCH_UP_MS_MAX, "catching up with the history", systemClock).catch(
        (error: Error) => {
          if (!(error instanceof DeadlineError)) throw error;
          this.#events.lost(this.#cell.name, error.message);
        },
      );
    await Promise.all(this.#naming);
  }

  /** Frees the slot. Repeatable. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    await Promise.all(this.#naming);
  }

  async #run(firstTried: () => void): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const lost = await this.#follow(firstTried);
      firstTried();
      if (signal.aborted) return;
      this.#events.lost(this.#cell.name, lost);
      await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Follows one unbroken stretch of history, and resolves with the reason of its end. */
  async #follow(opened: () => void): Promise<string> {
    const { signal } = this.#closing;
    const history = new CapacityHistory();
    const end = Promise.withResolvers<string>();
    const abort = (): void => end.resolve("it was closed");
    signal.addEventListener("abort", abort);
    let follower: HistoryFollower | null = null;
    try {
      follower = await HistoryFollower.open(
        this.#cell.databaseUrl,
        {
          onLoaded: (rows) => history.load(rows),
          onTransaction: (transaction) => this.#check(history, transaction),
          onLost: (error) => end.resolve(error.message),
        },
        signal,
      );
      this.#follower = follower;
      this.#events.followed(this.#cell.name);
      opened();
      if (signal.aborted) abort();
      return await end.promise;
    } catch (error) {
      return (error as Error).message;
    } finally {
      this.#follower = null;
      signal.removeEventListener("abort", abort);
      await follower?.close();
    }
  }

  #check(history: CapacityHistory, transaction: HistoryTransaction): void {
    this.#transactions += 1;
    for (const breach of history.commit(transaction.rows)) {
      const naming = this.#tell(breach, transaction);
      this.#naming.add(naming);
      void naming.finally(() => this.#naming.delete(naming));
    }
  }

  async #tell(breach: HistoryBreach, { xid, position, committedAtMs }: HistoryTransaction): Promise<void> {
    const { name, databaseUrl } = this.#cell;
    const number = `class ${breach.classId} of provider number ${breach.providerId}`;
    const inventory = await nameInventory(databaseUrl, breach).catch(() => number);
    this.#events.broken({
      law: 1,
      what: breach.what,
      where: `cell ${name}, ${inventory}`,
      proof: `${breach.proof}; transaction ${xid}, log position ${position}`,
      since: new Date(committedAtMs).toISOString(),
    });
  }
}
