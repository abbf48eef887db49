import { nameOfPromise } from "../core/audit/violation.ts";
import type { AuditReport } from "./audit-report.ts";
import { healingText } from "./heal-violations.ts";
import { violationText } from "./print-report.ts";
import type { AuditChange, WatchReport } from "./watch-cloud.ts";

/** Formats one change as a line for people. */
export function changeText(change: AuditChange): string {
  switch (change.kind) {
    case "broken":
      return `broken: ${nameOfPromise(change.violation.law)}: ${violationText(change.violation)}`;
    case "gone":
      return `gone: ${nameOfPromise(change.violation.law)}: ${violationText(change.violation)}`;
    case "unread":
      return `cannot be read: ${change.source}: ${change.reason}`;
    case "read":
      return `can be read again: ${change.source}`;
    case "healing":
      return healingText(change.healing, change.isDryRun);
    default:
      return change satisfies never;
  }
}

/** The end of a watch's output, before the last report. */
export function watchText({ readings, transactions }: WatchReport): string {
  const checked = Object.entries(transactions).map(([cell, count]) => `${count} in cell ${cell}`);
  return `watched: ${readings} readings; transactions of the ledger checked: ${checked.join(", ") || "none"}`;
}

/** The report of a watch as one JSON object. */
export function watchJson({ report, readings, transactions }: WatchReport): AuditReport & {
  readonly readings: number;
  readonly transactions: WatchReport["transactions"];
} {
  return { ...report, readings, transactions };
}
