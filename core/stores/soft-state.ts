import type { HostPick } from "../scheduling/host-pick.ts";
import type { LawsReading } from "./laws-reading.ts";
import type { SchedulerFigures } from "./scheduler-figures.ts";

/** How long a host's build failures are remembered after the last of them. */
export const buildFailureFadeMs = 3_600_000;
/** The time after which a failure counts half. It lets a host with many failures be tried again gradually, not all at once. */
export const buildFailureHalfLifeMs = buildFailureFadeMs / 4;

/** The value of a count `agoMs` after it was made, rounded to a hundredth. The script of the Redis adapter has the same formula. */
export function fadedCount(count: number, agoMs: number, fadeMs: number): number {
  return Math.round(count * 2 ** ((-4 * agoMs) / fadeMs) * 100) / 100;
}

/** How long other schedulers see a pick. It is longer than a claim takes to appear in their views. */
export const pickFadeMs = 1_000;

/** Maximum number of picks that one call reads, the most recent ones. */
export const picksReadMax = 2_000;

/**
 * Hints that schedulers exchange, and the findings of the audit for dashboards. All of it may be lost at any time. It is kept in Redis or in the in-memory twin. No decision needs them to be right.
 * Without them there are more lost races, and bad hosts are recognised later. No call rejects: while the store is unavailable, each call
 * soon answers as if the store were empty.
 */
export interface SoftState {
  /**
   * Announces this scheduler as live for `ttlMs` from now. Returns the sorted ids of all live schedulers, or only its own id while the
   * store is unavailable.
   */
  announce(schedulerId: string, ttlMs: number): Promise<readonly string[]>;
  /** The sorted ids of all live schedulers. */
  living(): Promise<readonly string[]>;
  withdraw(schedulerId: string): Promise<void>;
  /** Keeps the figures of a scheduler for `ttlMs`, or until the next ones. */
  recordFigures(schedulerId: string, figures: SchedulerFigures, ttlMs: number): Promise<void>;
  /** The last figures of these schedulers, by id. Schedulers without figures are left out. */
  figuresOf(schedulerIds: readonly string[]): Promise<ReadonlyMap<string, SchedulerFigures>>;
  /** Counts a build that failed through the host's fault. */
  recordBuildFailure(cell: string, host: string): Promise<void>;
  /** Resets the host's count after a build has succeeded there. */
  clearBuildFailures(cell: string, host: string): Promise<void>;
  /**
   * Counts by `<cell>/<host>`, to a hundredth. Each failure counts half after a quarter of an hour, and all are dropped an hour after the
   * last one.
   */
  buildFailures(): Promise<ReadonlyMap<string, number>>;
  /** Tells other schedulers that this one has just chosen these hosts. */
  recordPicks(schedulerId: string, picks: readonly HostPick[]): Promise<void>;
  /** The hosts that other schedulers chose within the last second, each scheduler's hosts once, limited to the 2,000 most recent picks. */
  recentPicks(schedulerId: string): Promise<readonly HostPick[]>;
  /** Keeps the findings of a continuous audit for `ttlMs`, or until the next ones. */
  recordLaws(reading: LawsReading, ttlMs: number): Promise<void>;
  /** The last findings, or null when none were recorded, or their time is over. */
  laws(): Promise<LawsReading | null>;
  close(): Promise<void>;
}
