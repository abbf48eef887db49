/** How a reader of a ledger view learns how fresh it is; the replication follower, or the in-process twin that is always so. */
export interface ViewSource {
  /**
   * Resolves once the view shows everything that was committed `staleMs` before the call (0 unless given: before the call
   * itself). Rejects with a ViewError after `deadlineMs`.
   */
  waitUntilSeen(deadlineMs: number, staleMs?: number): Promise<void>;
  /** Called after each applied transaction with its id; claims in flight are settled by it. Returns the unsubscriber. */
  onApplied(handler: (xid: number) => void): () => void;
  /** False while it has never loaded, or is loading anew after a lost connection. */
  readonly ready: boolean;
  /** How far the view was behind when its last transaction was applied, in milliseconds; null or nothing: not known. */
  readonly lagMs?: number | null;
}

/**
 * A view cannot say what it should. `behind`: it did not catch up within the deadline (the cell's database is away, or slow);
 * `closed`: this process is going down.
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
