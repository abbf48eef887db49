/** How long a host's build failures are remembered after the last of them. */
export const buildFailureFadeMs = 3_600_000;

/**
 * What schedulers tell each other, and may lose at any time: Redis, or the in-process twin. Nothing here is needed
 * for a right decision; without it there are more lost races and slower learning of bad hosts. No call rejects: with the
 * store gone each answers, soon, as if nobody had ever told it anything.
 */
export interface SoftState {
  /** I live (for `ttlMs` from now). Returns the ids of all schedulers that live, sorted; with the store gone only the own. */
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
