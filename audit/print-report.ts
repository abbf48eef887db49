import { type FoundViolation, LAW_NAMES } from "../core/audit/violation.ts";
import type { AuditReport } from "./audit-report.ts";

/** A broken cloud may have thousands of violations, so only the first ones of each law are printed. */
const SHOWN_PER_LAW_MAX = 20;

/** Formats a report for people: one line for each law, followed by its violations. */
export function auditText(report: AuditReport): string {
  const { counts } = report;
  const lines = [
    `audit of ${counted(report.cells.length, "cell")}: ${counted(counts.providers, "provider")}, ${counted(counts.consumers, "consumer")}, ` +
      `${counted(counts.servers, "server")}, ${counted(counts.requests, "request")} not deleted, ` +
      `${counted(counts.hostsAsked, "host")} asked for guests`,
  ];
  for (const [index, name] of LAW_NAMES.entries()) {
    const broken = report.violations.filter((violation) => violation.law === index + 1);
    lines.push(...sectionOf(`law ${index + 1}, ${name.padEnd(28)}`, broken, verdictOf(index + 1, counts)));
  }
  const apart = report.violations.filter((violation) => violation.law === "groups");
  lines.push(...sectionOf("server groups".padEnd(35), apart, "hold"));
  const ofCinder = report.violations.filter((violation) => violation.law === "volumes");
  lines.push(...sectionOf("volumes in Cinder".padEnd(35), ofCinder, cinderVerdict(report)));
  for (const [cell, reason] of Object.entries(report.unread)) lines.push(`  cell ${cell} could not be read: ${reason}`);
  for (const [what, reason] of Object.entries(report.unreadGuests))
    lines.push(`  ${what}: its guests are unknown: ${reason}`);
  return lines.join("\n");
}

/** `1 server`, `2 servers`. */
function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function sectionOf(title: string, broken: readonly FoundViolation[], verdict: string): string[] {
  const lines = [`  ${title} ${broken.length > 0 ? `${counted(broken.length, "violation")}` : verdict}`];
  for (const violation of broken.slice(0, SHOWN_PER_LAW_MAX)) lines.push(`    ${violationText(violation)}`);
  if (broken.length > SHOWN_PER_LAW_MAX) lines.push(`    … and ${broken.length - SHOWN_PER_LAW_MAX} more`);
  return lines;
}

/** One violation in one line. */
export function violationText({ what, where, proof, since }: FoundViolation): string {
  return `${what}: ${where}: ${proof} (since ${since})`;
}

/** Where only the agents know the guests, laws 4 and 6 are checked for the hosts whose agents were asked. */
function verdictOf(law: number, { hosts, hostsAsked }: AuditReport["counts"]): string {
  const isByWord = law === 4 || law === 6;
  if (!isByWord || hostsAsked >= hosts) return isByWord && hostsAsked === 0 ? NOBODY_ASKED : "holds";
  return hostsAsked === 0 ? NOBODY_ASKED : `holds on the ${hostsAsked} of ${hosts} hosts whose guests are known`;
}

function cinderVerdict({ unreadCinder, counts: { attachments } }: AuditReport): string {
  if (unreadCinder !== null) return `not checked: ${unreadCinder}`;
  return attachments === null
    ? "not checked: --volumes cinder compares them"
    : `agree with the servers (${counted(attachments, "attachment")})`;
}

const NOBODY_ASKED =
  "not checked: no host was asked for its guests (name the agents with --agents, or their journals with --journals)";
