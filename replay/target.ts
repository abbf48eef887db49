import type { AuditReport } from "../audit/audit-report.ts";
import type { Outcomes } from "./outcomes.ts";

/** The cloud that a replay drives. */
export interface ReplayTarget {
  readonly apiUrl: string;
  /** Whether the cloud runs in this process, where the replay should not compete with it for the main thread. */
  readonly isHere: boolean;
  /** The outcomes of creations. */
  readonly outcomes: Outcomes;
  /** Number of successful claims so far, or null when only the tally counts them. */
  claims(): number | null;
  /** Resolves when nothing is in flight, or after a while. It is needed because deletes are answered before they are done. */
  settle(): Promise<void>;
  /** Resolves with null when the databases are not known, so that nothing can be audited. */
  audit(): Promise<AuditReport | null>;
  close(): Promise<void>;
}

/** A time in milliseconds within which every claim, commit and order in flight has ended. */
export const AUDIT_PAUSE_MS = 2_000;
