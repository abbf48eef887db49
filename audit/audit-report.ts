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
  readonly counts: ReadingCounts;
}

export function auditReportOf(reading: CloudReading, violations: readonly FoundViolation[]): AuditReport {
  const { cells, counts, unread, unreadGuests } = reading;
  return {
    violations,
    cells,
    unread: Object.fromEntries(unread),
    unreadGuests: Object.fromEntries(unreadGuests),
    counts,
  };
}

/** Whether nothing is broken and nothing was left unread. */
export function isClean(report: AuditReport): boolean {
  return [report.violations, Object.keys(report.unread), Object.keys(report.unreadGuests)].every(
    ({ length }) => length === 0,
  );
}
