import type { FoundViolation } from "../core/audit/violation.ts";
import type { CloudReading, ReadingCounts } from "./read-cloud.ts";

/** The result of an audit of a cloud. */
export interface AuditReport {
  readonly violations: readonly FoundViolation[];
  readonly cells: readonly string[];
  /** Cells that could not be read, with the reason. */
  readonly unread: Readonly<Record<string, string>>;
  /** Agents, journals and hosts whose guests are unknown, with the reason. */
  readonly unreadGuests: Readonly<Record<string, string>>;
  /** Why Cinder could not be compared with the cells. Null if it was, or nobody asked for that. */
  readonly unreadCinder: string | null;
  readonly counts: ReadingCounts;
}

export function auditReportOf(reading: CloudReading, violations: readonly FoundViolation[]): AuditReport {
  const { cells, counts, unread, unreadGuests, unreadCinder } = reading;
  return {
    violations,
    cells,
    unread: Object.fromEntries(unread),
    unreadGuests: Object.fromEntries(unreadGuests),
    unreadCinder,
    counts,
  };
}

/** Whether nothing is broken and nothing was left unread. */
export function isClean(report: AuditReport): boolean {
  const faults = [report.violations, Object.keys(report.unread), Object.keys(report.unreadGuests)];
  return faults.every(({ length }) => length === 0) && report.unreadCinder === null;
}
