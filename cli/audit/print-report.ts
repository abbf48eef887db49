import type { AuditReport } from "./audit-twice.ts";

const LAWS = ["no oversubscription", "no orphans", "no up-calls", "one home", "every accepted request ends"] as const;
/** A broken cloud breaks by the thousand; the first of each law tell enough. */
const SHOWN_PER_LAW_MAX = 20;

/** What a person reads: a line a law, under it what breaks it. */
export function auditText(report: AuditReport): string {
  const { counts } = report;
  const lines = [
    `audit of ${report.cells.length} cells: ${counts.providers} providers, ${counts.consumers} consumers, ${counts.servers} servers, ` +
      `${counts.requests} open requests, ${counts.hostsAsked} hosts asked what runs there`,
  ];
  for (const [index, name] of LAWS.entries()) {
    const broken = report.violations.filter((violation) => violation.law === index + 1);
    const verdict = broken.length > 0 ? `${broken.length} violations` : verdictOf(index + 1, counts.hostsAsked);
    lines.push(`  law ${index + 1}, ${name.padEnd(28)} ${verdict}`);
    for (const { what, where, proof } of broken.slice(0, SHOWN_PER_LAW_MAX))
      lines.push(`    ${what}: ${where}: ${proof}`);
    if (broken.length > SHOWN_PER_LAW_MAX) lines.push(`    … and ${broken.length - SHOWN_PER_LAW_MAX} more`);
  }
  for (const [cell, reason] of Object.entries(report.unread)) lines.push(`  cell ${cell} could not be read: ${reason}`);
  return lines.join("\n");
}

/** Where guests really run only the agents know: law 4 holds by the word of those that were asked. */
function verdictOf(law: number, hostsAsked: number): string {
  return law === 4 && hostsAsked === 0 ? "not checked: no host was asked what runs there" : "holds";
}

/** Nothing is broken, and nothing was left unread. */
export function isClean(report: AuditReport): boolean {
  return report.violations.length === 0 && Object.keys(report.unread).length === 0;
}
