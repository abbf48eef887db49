import { healOrphan } from "../adapters/postgres/audit/heal-orphan.ts";
import { healRequest } from "../adapters/postgres/audit/heal-request.ts";
import { healUnasked } from "../adapters/postgres/audit/heal-unasked.ts";
import { healUsed } from "../adapters/postgres/audit/heal-used.ts";
import type { Healing, HealOutcome } from "../core/audit/healing.ts";
import type { FoundViolation } from "../core/audit/violation.ts";
import type { AuditedCloud } from "./read-cloud.ts";

/**
 * Heals those confirmed violations that can be healed safely. Each is checked again under lock, in a transaction of its own. For the others
 * it returns why they are not healed. Orphans come first, because releasing them also corrects the `used` that they inflated. With
 * `isDryRun` it does everything and keeps nothing. A healing that fails is left, with the reason.
 */
export async function healViolations(
  cloud: Pick<AuditedCloud, "apiUrl" | "cells">,
  violations: readonly FoundViolation[],
  isDryRun: boolean,
): Promise<readonly Healing[]> {
  const orphansFirst = [...violations].sort((a, b) => Number(b.law === 2) - Number(a.law === 2));
  const healings: Healing[] = [];
  for (const violation of orphansFirst) {
    const outcome = await healOne(cloud, violation, isDryRun).catch(
      (error: Error): HealOutcome => ({ kind: "left", why: `it failed: ${error.message}` }),
    );
    healings.push({ what: violation.what, where: violation.where, outcome });
  }
  return healings;
}

async function healOne(
  { apiUrl, cells }: Pick<AuditedCloud, "apiUrl" | "cells">,
  { subject }: FoundViolation,
  isDryRun: boolean,
): Promise<HealOutcome> {
  const cellUrl = (name: string): string | null => cells.find((cell) => cell.name === name)?.databaseUrl ?? null;
  switch (subject?.kind) {
    case undefined:
      return { kind: "left", why: "there is no safe way to heal it" };
    case "guest":
      return {
        kind: "left",
        why: "the cell's conductors destroy guests that are not at home when they hear of them, at the latest when the agent connects again",
      };
    case "request":
      return healRequest({ apiUrl, cells }, subject.serverUuid, isDryRun);
    case "unasked":
    case "consumer":
    case "inventory": {
      const url = cellUrl(subject.cell);
      if (url === null) return { kind: "left", why: `there is no cell ${subject.cell}` };
      if (subject.kind === "unasked") return healUnasked({ api: apiUrl, cell: url }, subject, isDryRun);
      return subject.kind === "consumer" ? healOrphan(url, subject.uuid, isDryRun) : healUsed(url, subject, isDryRun);
    }
    default:
      return subject satisfies never;
  }
}

/** Formats one healing as a line for people. */
export function healingText({ what, where, outcome }: Healing, isDryRun: boolean): string {
  const subject = `${what}: ${where}`;
  switch (outcome.kind) {
    case "healed":
      return `${isDryRun ? "would heal" : "healed"}: ${subject}: before: ${outcome.before}; after: ${outcome.after}`;
    case "in-order":
      return `no longer wrong: ${subject}`;
    case "left":
      return `left: ${subject}: ${outcome.why}`;
    default:
      return outcome satisfies never;
  }
}
