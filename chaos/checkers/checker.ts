import type { HistoryLine } from "../history-line.ts";

/** Something in a history that must not happen. */
export interface Finding {
  /** When it was observed, in milliseconds since the run began. */
  readonly atMs: number;
  /** A description of the fault. */
  readonly what: string;
  readonly server?: string;
}

/** A checker's verdict on a history. */
export type CheckOutcome =
  | { readonly kind: "holds" }
  /** Everything that is wrong, in the order of observation. */
  | { readonly kind: "broken"; readonly findings: readonly Finding[] }
  /** The history does not contain enough to decide, for example because the run was broken off. */
  | { readonly kind: "unknown"; readonly why: string };

/** Judges whole histories, as Jepsen's checkers do: a pure function that sees only the observations of clients. */
export interface Checker {
  readonly name: string;
  check(history: readonly HistoryLine[]): CheckOutcome;
}

export interface CheckResult {
  readonly checker: string;
  readonly outcome: CheckOutcome;
}

/** Runs the checkers on the history and returns their outcomes in the same order. */
export function checkHistory(history: readonly HistoryLine[], checkers: readonly Checker[]): readonly CheckResult[] {
  return checkers.map((checker) => ({ checker: checker.name, outcome: checker.check(history) }));
}

/**
 * All findings of the checkers, one line each: `name: what`. An unknown outcome counts as a failure, too. Empty when everything is well.
 */
export function failuresOf(results: readonly CheckResult[]): readonly string[] {
  return results.flatMap(({ checker, outcome }) => {
    switch (outcome.kind) {
      case "holds":
        return [];
      case "broken":
        return outcome.findings.map(({ what, atMs }) => `${checker}: ${what} (${(atMs / 1_000).toFixed(1)} s)`);
      case "unknown":
        return [`${checker}: unknown: ${outcome.why}`];
      default:
        return outcome satisfies never;
    }
  });
}

/** Turns findings into an outcome. */
export function outcomeOf(findings: readonly Finding[]): CheckOutcome {
  if (findings.length === 0) return { kind: "holds" };
  return { kind: "broken", findings: [...findings].sort((a, b) => a.atMs - b.atMs) };
}
