/** How a reader of a ledger view learns how fresh it is; the replication follower, or the in-process twin that is always so. */
export interface ViewSource {
  /** Resolves once the view shows everything that was committed before the call. Rejects after `deadlineMs`. */
  waitUntilSeen(deadlineMs: number): Promise<void>;
  /** Called after each applied transaction with its id; claims in flight are settled by it. Returns the unsubscriber. */
  onApplied(handler: (xid: number) => void): () => void;
  /** False while it has never loaded, or is loading anew after a lost connection. */
  readonly ready: boolean;
}
