/**
 * Tells a reader of a ledger view how fresh the view is. It is either the replication follower, or the in-process twin, which is always
 * fresh.
 */
export interface ViewSource {
  /**
   * Resolves once the view shows everything that was committed `staleMs` before the call (0 by default): with true if it is known that the
   * view had shown all of it at the call already, so that what its caller has read since, without waiting for anything, is as fresh.
   * Rejects with a ViewError after `deadlineMs`.
   */
  waitUntilSeen(deadlineMs: number, staleMs?: number): Promise<boolean>;
  /** Calls the handler after each applied transaction with its id, which settles claims in flight. Returns a function that unsubscribes. */
  onApplied(handler: (xid: number) => void): () => void;
  /** False before the first load, and during a new load after a lost connection. */
  readonly ready: boolean;
  /** How many milliseconds the view was behind when its last transaction was applied. Null or absent when that is unknown. */
  readonly lagMs?: number | null;
}

/**
 * A view cannot give a fresh answer. `behind`: it did not catch up within the deadline, because the cell's database is away or slow.
 * `closed`: this process is stopping.
 */
export class ViewError extends Error {
  readonly code: "behind" | "closed";
  readonly cell: string;

  constructor(code: "behind" | "closed", cell: string, message: string) {
    super(message);
    this.name = "ViewError";
    this.code = code;
    this.cell = cell;
  }
}
