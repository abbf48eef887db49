import type { AuditReport } from "../audit/audit-report.ts";
import type { Outcomes } from "./outcomes.ts";

/** The cloud that a replay drives. */
export interface ReplayTarget {
  readonly apiUrl: string;
  /** The cloud runs in this process: what calls it should stay out of its way. */
  readonly isHere: boolean;
  /** Told of each creation's end. */
  readonly outcomes: Outcomes;
  /** Claims that went through so far; null: the tally's own count is all there is. */
  claims(): number | null;
  /** Resolves when nothing is in flight any more, or after a while: deletes are answered before they are done. */
  settle(): Promise<void>;
  /** Null: the databases are not known, so nothing can be audited. */
  audit(): Promise<AuditReport | null>;
  close(): Promise<void>;
}

/** Long enough for claims, commits and orders that are in flight at the first reading. */
export const AUDIT_PAUSE_MS = 2_000;
