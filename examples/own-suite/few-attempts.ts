import type { Checker } from "berth/chaos";

/** An own checker: no server was built more often than this. It reads only the history, so it also judges the histories of other runs. */
export function fewAttempts(attemptsMax: number): Checker {
  return {
    name: `at most ${attemptsMax} attempts`,
    check(history) {
      const ends = history.flatMap((line) => (line.what === "state" && line.attempts !== undefined ? [line] : []));
      if (ends.length === 0) return { kind: "unknown", why: "no server was seen with its attempts" };
      const findings = ends
        .filter(({ attempts = 0 }) => attempts > attemptsMax)
        .map(({ atMs, server, attempts }) => ({ atMs, server, what: `server ${server} was built ${attempts} times` }));
      return findings.length === 0 ? { kind: "holds" } : { kind: "broken", findings };
    },
  };
}
