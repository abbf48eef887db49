import { setTimeout as delay } from "node:timers/promises";
import { conductorPermissions } from "../../adapters/nats/streams.ts";
import { auditCloud } from "../../core/audit/audit-cloud.ts";
import { checkUpCalls } from "../../core/audit/check-up-calls.ts";
import { persisting, type Violation } from "../../core/audit/violation.ts";
import { type AuditedCell, type CloudReading, readCloud } from "./read-cloud.ts";

export interface AuditReport {
  readonly violations: readonly Violation[];
  readonly cells: readonly string[];
  /** Cells that could not be read, with the reason. */
  readonly unread: Readonly<Record<string, string>>;
  readonly counts: {
    readonly providers: number;
    readonly consumers: number;
    readonly servers: number;
    readonly requests: number;
    /** Hosts whose agents told what runs there. */
    readonly hostsAsked: number;
  };
}

export interface AuditOptions {
  readonly apiUrl: string;
  readonly cells: readonly AuditedCell[];
  /** Between the two readings: longer than a claim, a commit or an order to an agent is in flight. */
  readonly pauseMs: number;
  /** How long a request or a task may lie about unattended. */
  readonly patienceMs: number;
  /** Names of all that a conductor is told. */
  readonly conductorSettings: readonly string[];
}

/** Audits a live cloud: what one reading shows and a second one, a pause later, shows again, is broken. */
export async function auditTwice(options: AuditOptions): Promise<AuditReport> {
  const first = await readCloud(options.apiUrl, options.cells);
  const suspects = auditCloud(first.facts, options.patienceMs);
  const upCalls = options.cells.flatMap(({ name }) =>
    checkUpCalls({ settings: options.conductorSettings, cell: name, publishes: conductorPermissions(name).publish }),
  );
  // A clean reading needs no second one.
  if (suspects.length === 0) return reportOf(first, upCalls);
  await delay(options.pauseMs);
  const second = await readCloud(options.apiUrl, options.cells);
  return reportOf(second, [...persisting(suspects, auditCloud(second.facts, options.patienceMs)), ...upCalls]);
}

function reportOf({ facts, unread }: CloudReading, violations: readonly Violation[]): AuditReport {
  const total = (countOf: (cell: (typeof facts.cells)[number]) => number): number =>
    facts.cells.reduce((sum, cell) => sum + countOf(cell), 0);
  return {
    violations,
    cells: facts.cells.map((cell) => cell.cell),
    unread: Object.fromEntries(unread),
    counts: {
      providers: total((cell) => cell.ledger.providers.length),
      consumers: total((cell) => cell.ledger.consumers.length),
      servers: total((cell) => cell.servers.length),
      requests: facts.api?.requests.length ?? 0,
      hostsAsked: total((cell) => cell.runningGuests.size),
    },
  };
}
