import type { ClientOperation } from "../history-line.ts";
import { clientCalls } from "../report/client-calls.ts";
import { longestGap } from "../report/service-gap.ts";
import { type Checker, outcomeOf } from "./checker.ts";

/**
 * While requests are made, there is never more than `maxMs` without a success. `ops` limits this to some operations; all count by
 * default.
 */
export function timeWithoutService(limit: {
  readonly maxMs: number;
  readonly ops?: readonly ClientOperation[];
}): Checker {
  const { maxMs, ops } = limit;
  const name = `time without service${ops === undefined ? "" : ` (${ops.join(", ")})`}`;
  return {
    name,
    check(history) {
      const gap = longestGap(clientCalls(history), ops);
      if (gap === null) return { kind: "unknown", why: "no such request was made" };
      const ms = Math.round(gap.toMs - gap.fromMs);
      return outcomeOf(
        ms <= maxMs ? [] : [{ atMs: gap.fromMs, what: `no success for ${ms} ms; at most ${maxMs} ms are allowed` }],
      );
    },
  };
}
