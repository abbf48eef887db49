import { type Checker, outcomeOf } from "./checker.ts";

/** The audit at the end of the run found none of the six laws broken. */
export const lawsHold: Checker = {
  name: "the six laws",
  check(history) {
    const verdicts = history.filter((line) => line.what === "verdict");
    if (verdicts.length === 0) return { kind: "unknown", why: "there was no audit" };
    return outcomeOf(
      verdicts
        .filter(({ holds }) => !holds)
        .map(({ atMs, law, violations }) => ({ atMs, what: `law ${law} is broken: ${violations.join("; ")}` })),
    );
  },
};
