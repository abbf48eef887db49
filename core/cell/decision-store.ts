import type { Decision } from "../scheduling/explain/decision.ts";

/** How one request was decided, by one scheduler. */
export interface DecisionRecord {
  readonly serverUuid: string;
  /** Of the call that asked for the server. */
  readonly requestId: string;
  readonly scheduler: string;
  readonly atMs: number;
  readonly decision: Decision;
}

/** Decisions older than this, or beyond so many, are forgotten. */
export interface DecisionLimits {
  readonly beforeMs: number;
  readonly recordsMax: number;
}

/** Records of one server that are given at most: a request that is delivered again and again may have several. */
export const DECISIONS_OF_SERVER_MAX = 20;

/**
 * Why servers are where they are, or nowhere: kept for whoever asks, needed by nobody. In the API database. Both bodies (Postgres,
 * in-memory) pass test/contract/decision-store.
 */
export interface DecisionStore {
  /** Appends them all. */
  putDecisions(records: readonly DecisionRecord[]): Promise<void>;
  /** Of one server, the newest first, DECISIONS_OF_SERVER_MAX at most. */
  decisionsOf(serverUuid: string): Promise<readonly DecisionRecord[]>;
  /** Forgets what is beyond the limits, the oldest first; says how many. Some more than `recordsMax` may stay for a while. */
  purgeDecisions(limits: DecisionLimits): Promise<number>;
}
