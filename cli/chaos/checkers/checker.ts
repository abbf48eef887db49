import type { HistoryLine } from "../history-line.ts";

/** Something in a history that must not be. */
export interface Finding {
  /** When it showed, in milliseconds since the run began. */
  readonly atMs: number;
  /** What is wrong, for people. */
  readonly what: string;
  readonly server?: string;
}

/** What a checker says of a history. */
export type CheckOutcome =
  | { readonly kind: "holds" }
  /** All that is wrong, in the order in which it showed. */
  | { readonly kind: "broken"; readonly findings: readonly Finding[] }
  /** The history does not tell, for example since it was broken off. */
  | { readonly kind: "unknown"; readonly why: string };

/** Judges whole histories, in the manner of Jepsen: pure, by what clients saw and nothing else. */
export interface Checker {
  readonly name: string;
  check(history: readonly HistoryLine[]): CheckOutcome;
}

export interface CheckResult {
  readonly checker: string;
  readonly outcome: CheckOutcome;
}

/** What each of the checkers says, in their order. */
export function checkHistory(history: readonly HistoryLine[], checkers: readonly Checker[]): readonly CheckResult[] {
  return checkers.map((checker) => ({ checker: checker.name, outcome: checker.check(history) }));
}

/** All that the checkers found wrong, a line each: `name: what`. Empty: nothing; what nobody could tell is wrong, too. */
export function failuresOf(results: readonly CheckResult[]): readonly string[] {
  return results.flatMap(({ checker, outcome }) => {
    switch (outcome.kind) {
      case "holds":
        return [];
      case "broken":
        return outcome.findings.map(({ what, atMs }) => `${checker}: ${what} (${(atMs / 1_000).toFixed(1)} s)`);
      case "unknown":
        return [`${checker}: cannot be told: ${outcome.why}`];
      default:
        return outcome satisfies never;
    }
  });
}

/** Findings as an outcome. */
export function outcomeOf(findings: readonly Finding[]): CheckOutcome {
  if (findings.length === 0) return { kind: "holds" };
  return { kind: "broken", findings: [...findings].sort((a, b) => a.atMs - b.atMs) };
}
