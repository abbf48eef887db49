import type { HistoryLine, NotedFault } from "../history-line.ts";

/** A fault from its beginning to its end, in milliseconds since the run began. */
export interface FaultSpan {
  readonly faultId: number;
  readonly fault: NotedFault;
  readonly target: string;
  readonly detail: string | null;
  readonly fromMs: number;
  /** End of the fault, or the end of the history if the fault never ended. */
  readonly toMs: number;
  readonly ended: boolean;
}

/** The faults of a run, in the order in which they began. */
export function faultSpans(history: readonly HistoryLine[]): readonly FaultSpan[] {
  const endsAt = new Map<number, number>();
  for (const line of history) if (line.what === "fault-ends") endsAt.set(line.faultId, line.atMs);
  const lastMs = endOf(history);
  return history
    .flatMap((line) => (line.what === "fault-begins" ? [line] : []))
    .map(({ faultId, fault, target, detail, atMs }) => ({
      ...{ faultId, fault, target, detail: detail ?? null, fromMs: atMs },
      toMs: endsAt.get(faultId) ?? lastMs,
      ended: endsAt.has(faultId),
    }))
    .sort((a, b) => a.fromMs - b.fromMs || a.faultId - b.faultId);
}

/** The time of the last event of a history. */
export function endOf(history: readonly HistoryLine[]): number {
  return history.reduce((last, { atMs }) => Math.max(last, atMs), 0);
}
