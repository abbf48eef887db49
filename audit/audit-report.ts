import type { FoundViolation } from "../core/audit/violation.ts";
import type { CloudReading } from "./read-cloud.ts";

/** The result of an audit of a cloud. */
export interface AuditReport {
  readonly violations: readonly FoundViolation[];
  readonly cells: readonly string[];
  /** Cells that could not be read, with the reason. */
  readonly unread: Readonly<Record<string, string>>;
  /** Agents, journals and hosts whose guests are unknown, with the reason. */
  readonly unreadGuests: Readonly<Record<string, string>>;
  readonly counts: {
    readonly providers: number;
    readonly consumers: number;
    readonly servers: number;
    readonly requests: number;
    readonly hosts: number;
    /** Number of hosts whose guests were reported by their agents or in these agents' journals. */
    readonly hostsAsked: number;
  };
}

export function auditReportOf(reading: CloudReading, violations: readonly FoundViolation[]): AuditReport {
  const { facts, unread, unreadGuests } = reading;
  const total = (countOf: (cell: (typeof facts.cells)[number]) => number): number =>
    facts.cells.reduce((sum, cell) => sum + countOf(cell), 0);
  return {
    violations,
    cells: facts.cells.map((cell) => cell.cell),
    unread: Object.fromEntries(unread),
    unreadGuests: Object.fromEntries(unreadGuests),
    counts: {
      providers: total((cell) => cell.ledger.providers.length),
      consumers: total((cell) => cell.ledger.consumers.length),
      servers: total((cell) => cell.servers.length),
      requests: facts.api?.requests.length ?? 0,
      hosts: total((cell) => cell.hosts.size),
      hostsAsked: total((cell) => cell.runningGuests.size),
    },
  };
}

/** Whether nothing is broken and nothing was left unread. */
export function isClean(report: AuditReport): boolean {
  return [report.violations, Object.keys(report.unread), Object.keys(report.unreadGuests)].every(
    ({ length }) => length === 0,
  );
}
