import type { Decision } from "../../scheduling/explain/decision.ts";

/** How one scheduler decided one request. */
export interface DecisionRecord {
  readonly serverUuid: string;
  /** Id of the API call that asked for the server. */
  readonly requestId: string;
  readonly scheduler: string;
  readonly atMs: number;
  readonly decision: Decision;
}

/** Decisions that are older than this, or beyond this number of records, are deleted. */
export interface DecisionLimits {
  readonly beforeMs: number;
  readonly recordsMax: number;
}

/** Maximum number of records that are returned for one server. A request that is delivered repeatedly may have several. */
export const DECISIONS_OF_SERVER_MAX = 20;

/**
 * Records in the API database why each server was placed where it is, or was not placed. The records serve diagnosis only; no service
 * depends on them. Both implementations (Postgres, in-memory) pass test/contract/decision-store.
 */
export interface DecisionStore {
  /** Appends all records. */
  putDecisions(records: readonly DecisionRecord[]): Promise<void>;
  /** Decisions on one server, newest first, at most DECISIONS_OF_SERVER_MAX. */
  decisionsOf(serverUuid: string): Promise<readonly DecisionRecord[]>;
  /**
   * Deletes the records beyond the limits, oldest first, and returns how many. Slightly more than `recordsMax` records may stay for a
   * while.
   */
  purgeDecisions(limits: DecisionLimits): Promise<number>;
}
