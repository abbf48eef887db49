import type { ServerLife } from "./server-lives.ts";

/** How often a reason was given for a failure. */
export interface ReasonCount {
  readonly reason: string;
  readonly count: number;
}

/** Why builds were tried again elsewhere, and why servers ended in ERROR. */
export interface BuildFigures {
  /** Attempts that failed, by reason, the most frequent first. */
  readonly retries: readonly ReasonCount[];
  readonly errors: readonly ReasonCount[];
  /** Servers that became ACTIVE, by the number of attempts that it took. */
  readonly attempts: readonly { readonly attempts: number; readonly servers: number }[];
}

export function buildFigures(lives: readonly ServerLife[]): BuildFigures {
  const retries: string[] = [];
  const errors: string[] = [];
  const attempts = new Map<number, number>();
  for (const { end } of lives) {
    if (end === null) continue;
    const reasons = end.reasons ?? [];
    retries.push(...(end.state === "ERROR" ? reasons.slice(0, -1) : reasons));
    if (end.state === "ERROR") errors.push(reasons.at(-1) ?? "no reason was given");
    else if (end.attempts !== undefined) attempts.set(end.attempts, (attempts.get(end.attempts) ?? 0) + 1);
  }
  return {
    retries: countReasons(retries),
    errors: countReasons(errors),
    attempts: [...attempts]
      .map(([tried, servers]) => ({ attempts: tried, servers }))
      .sort((a, b) => a.attempts - b.attempts),
  };
}

/** Counts reasons. Those that differ only in names (UUIDs, numbered hosts) count as one. */
export function countReasons(reasons: readonly string[]): readonly ReasonCount[] {
  const counts = new Map<string, number>();
  for (const reason of reasons.map(withoutNames)) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts]
    .map(([reason, count]) => ({ reason, count }))
    .sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1));
}

/** Reduces an answer of the API to its message, and replaces names. */
function withoutNames(reason: string): string {
  const message = /"message": ?"((?:[^"\\]|\\.)*)/.exec(reason)?.[1] ?? reason;
  return message
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, "…")
    .replace(/\b[A-Za-z][\w.]*(?:-[\w.]*)*-\d+\b/g, "…")
    .trim();
}
