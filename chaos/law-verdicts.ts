import type { AuditReport } from "../audit/audit-report.ts";
import { violationText } from "../audit/print-report.ts";
import type { Verdict } from "./history-line.ts";

/** The verdict on each law over all audits. A law that some part could not be read for is not known to hold. */
export function lawVerdicts(reports: readonly AuditReport[]): readonly Pick<Verdict, "law" | "holds" | "violations">[] {
  return ([1, 2, 3, 4, 5, 6] as const).map((law) => {
    const broken = reports.flatMap(({ violations }) => violations.filter((violation) => violation.law === law));
    const unread = reports.flatMap((report) => Object.entries({ ...report.unread, ...report.unreadGuests }));
    const unknown = unread.map(([what, why]) => `${what} could not be read: ${why}`);
    // Law 3 needs no reading, so unread parts do not matter to it.
    const violations = [...broken.map(violationText), ...(law === 3 ? [] : unknown)];
    return { law, holds: violations.length === 0, violations };
  });
}
