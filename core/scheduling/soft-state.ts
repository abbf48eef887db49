/** How long a host's build failures are remembered after the last of them. */
export const buildFailureFadeMs = 3_600_000;
/** A failure counts half after so long: a host that has failed a lot is tried again by and by, not all at once. */
export const buildFailureHalfLifeMs = buildFailureFadeMs / 4;

/** What a count is `agoMs` after it was made; to a hundredth. The Redis body has the same in its script. */
export function fadedCount(count: number, agoMs: number, fadeMs: number): number {
  return Math.round(count * 2 ** ((-4 * agoMs) / fadeMs) * 100) / 100;
}

/** How long a pick is told to the others: longer than a claim takes to show in their views. */
export const pickFadeMs = 1_000;

/** Most picks that one call reads: the youngest. */
export const picksReadMax = 2_000;

/** A host that a scheduler has just chosen. */
export interface HostPick {
  readonly cell: string;
  readonly host: string;
}

/**
 * What schedulers tell each other, and may lose at any time: Redis, or the in-process twin. Nothing here is needed
 * for a right decision; without it there are more lost races and slower learning of bad hosts. No call rejects: with the
 * store gone each answers, soon, as if nobody had ever told it anything.
 */
export interface SoftState {
  /** I live (for `ttlMs` from now). Returns the ids of all schedulers that live, sorted; with the store gone only the own. */
  announce(schedulerId: string, ttlMs: number): Promise<readonly string[]>;
  /** Ids of all schedulers that live, sorted. */
  living(): Promise<readonly string[]>;
  withdraw(schedulerId: string): Promise<void>;
  /** A build failed by the host's fault. */
  recordBuildFailure(cell: string, host: string): Promise<void>;
  /** A build succeeded there: its count starts anew. */
  clearBuildFailures(cell: string, host: string): Promise<void>;
  /**
   * Counts by `<cell>/<host>`, to a hundredth: each failure counts half after a quarter of an hour, and all are forgotten an
   * hour after the last.
   */
  buildFailures(): Promise<ReadonlyMap<string, number>>;
  /** I have just chosen these hosts (again). */
  recordPicks(schedulerId: string, picks: readonly HostPick[]): Promise<void>;
  /** What the others have chosen within the last second, each scheduler's hosts once; at most 2,000, the youngest. */
  recentPicks(schedulerId: string): Promise<readonly HostPick[]>;
  close(): Promise<void>;
}
