import { setTimeout as delay } from "node:timers/promises";
import type { Healing } from "../core/audit/healing.ts";
import { type FoundViolation, keyOfViolation } from "../core/audit/violation.ts";
import { ViolationTracker } from "../core/audit/violation-tracker.ts";
import { type AuditReport, auditReportOf } from "./audit-report.ts";
import { type AuditOptions, observeCloud, upCallsOf } from "./audit-twice.ts";
import { CellHistoryWatch } from "./cell-history-watch.ts";
import { healViolations } from "./heal-violations.ts";
import type { CloudReading } from "./read-cloud.ts";

/** The changes that a watch reports. */
export type AuditChange =
  /** `isPast`: a transaction of the history broke the law, whatever holds now. Nothing reports the end of such a violation. */
  | { readonly kind: "broken"; readonly violation: FoundViolation; readonly isPast: boolean }
  | { readonly kind: "gone"; readonly violation: FoundViolation }
  /** A cell, an agent, a journal, Cinder or the history of a cell can no longer be read (`unread`), or can be read again (`read`). */
  | { readonly kind: "unread"; readonly source: string; readonly reason: string }
  | { readonly kind: "read"; readonly source: string }
  | { readonly kind: "healing"; readonly healing: Healing; readonly isDryRun: boolean };

/** Sources with this prefix are histories of cells. All other sources are part of each reading. */
export const HISTORY_SOURCE = "history of ";

export interface WatchOptions extends AuditOptions {
  readonly everyMs: number;
  /** Ends the watch when aborted, after one more reading. */
  readonly signal: AbortSignal;
  readonly onChange: (change: AuditChange) => void;
  /** Heals confirmed violations, once each time that one is confirmed. */
  readonly heal?: { readonly isDryRun: boolean } | undefined;
  /** Called after each reading. */
  readonly onReading?: (reading: CloudReading) => void;
}

export interface WatchReport {
  /** The last reading, with everything that was confirmed since the watch began, even if it is gone. */
  readonly report: AuditReport;
  readonly readings: number;
  /** Number of transactions checked, by cell. */
  readonly transactions: Readonly<Record<string, number>>;
}

/**
 * Audits repeatedly until it is told to end, and meanwhile follows the history of every cell's ledger. Work in progress raises no alarm: a
 * violation of the present state is reported when it has lasted for `pauseMs`, and one of the history at once, since a transaction proves
 * it. Rejects when the API database cannot be read at the first reading. A later failure is reported as a change.
 */
export async function watchCloud(options: WatchOptions): Promise<WatchReport> {
  const told = new Map<string, FoundViolation>();
  const sources = new SourceStates(options.onChange);
  const tell = (violation: FoundViolation, isPast: boolean): void => {
    told.set(keyOfViolation(violation), violation);
    options.onChange({ kind: "broken", violation, isPast });
  };
  const tellPresent = (violation: FoundViolation): void => tell(violation, false);
  const histories = options.cells.map(
    (cell) =>
      new CellHistoryWatch(cell, {
        broken: (violation) => tell(violation, true),
        followed: (name) => sources.read(`${HISTORY_SOURCE}cell ${name}`),
        lost: (name, reason) => sources.unread(`${HISTORY_SOURCE}cell ${name}`, reason),
      }),
  );
  try {
    await Promise.all(histories.map((history) => history.start()));
    for (const violation of upCallsOf(options)) tellPresent(violation);
    const { last, readings } = await readUntilEnd(options, sources, tellPresent);
    await Promise.all(histories.map((history) => history.catchUp()));
    return {
      report: auditReportOf(last, [...told.values()]),
      readings,
      transactions: Object.fromEntries(
        options.cells.map(({ name }, index) => [name, histories[index]?.transactions ?? 0]),
      ),
    };
  } finally {
    await Promise.all(histories.map((history) => history.close()));
  }
}

async function readUntilEnd(
  options: WatchOptions,
  sources: SourceStates,
  tell: (violation: FoundViolation) => void,
): Promise<{ readonly last: CloudReading; readonly readings: number }> {
  const { signal, onChange } = options;
  const tracker = new ViolationTracker(options.pauseMs);
  let last: CloudReading | null = null;
  for (let readings = 1; ; readings += 1) {
    const isLast = signal.aborted;
    const observed = await observeCloud(options, tracker).catch((error: Error) => {
      if (last === null) throw error;
      sources.unread("API database", error.message);
      return null;
    });
    if (observed !== null) {
      last = observed.reading;
      sources.take(observed.reading);
      for (const violation of observed.changes.confirmed) tell(violation);
      for (const violation of observed.changes.gone) onChange({ kind: "gone", violation });
      if (options.heal !== undefined) {
        const { isDryRun } = options.heal;
        const healings = await healViolations(options, observed.changes.confirmed, isDryRun);
        for (const healing of healings) onChange({ kind: "healing", healing, isDryRun });
      }
      options.onReading?.(observed.reading);
    }
    if (isLast && last !== null) return { last, readings };
    await delay(options.everyMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Reports each source once when it can no longer be read, and once when it can be read again. */
class SourceStates {
  readonly #onChange: (change: AuditChange) => void;
  readonly #unread = new Set<string>();

  constructor(onChange: (change: AuditChange) => void) {
    this.#onChange = onChange;
  }

  unread(source: string, reason: string): void {
    if (this.#unread.has(source)) return;
    this.#unread.add(source);
    this.#onChange({ kind: "unread", source, reason });
  }

  read(source: string): void {
    if (this.#unread.delete(source)) this.#onChange({ kind: "read", source });
  }

  /** Every source was read unless the reading lists it as unread. Histories are not part of a reading. */
  take({ unread, unreadGuests, unreadCinder }: CloudReading): void {
    const missing = new Map([...[...unread].map(([cell, why]) => [`cell ${cell}`, why] as const), ...unreadGuests]);
    if (unreadCinder !== null) missing.set("Cinder", unreadCinder);
    for (const source of [...this.#unread]) {
      if (!missing.has(source) && !source.startsWith(HISTORY_SOURCE)) this.read(source);
    }
    for (const [source, reason] of missing) this.unread(source, reason);
  }
}
