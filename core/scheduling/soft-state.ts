/**
 * What schedulers tell each other, and may lose at any time: Redis, or the in-process twin. Nothing here is needed
 * for a right decision; without it there are more lost races and slower learning of bad hosts.
 */
export interface SoftState {
  /** I live (for `ttlMs` from now). Returns the ids of all schedulers that live, sorted. */
  announce(schedulerId: string, ttlMs: number): Promise<readonly string[]>;
  withdraw(schedulerId: string): Promise<void>;
  /** A build failed by the host's fault. */
  recordBuildFailure(cell: string, host: string): Promise<void>;
  /** A build succeeded there: its count starts anew. */
  clearBuildFailures(cell: string, host: string): Promise<void>;
  /** Counts by `<cell>/<host>`; a count fades when no failure was added for an hour. */
  buildFailures(): Promise<ReadonlyMap<string, number>>;
  close(): Promise<void>;
}
