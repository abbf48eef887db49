import { endOf } from "../report/fault-spans.ts";
import { isStuck, serverLives } from "../report/server-lives.ts";
import { type Checker, outcomeOf } from "./checker.ts";

/**
 * Every server whose create was accepted becomes ACTIVE or ERROR, or is deleted, and every server whose delete was accepted is gone in the
 * end, both within the time that the run waited. The outcome is unknown when the run neither settled nor gave up waiting.
 */
export const acceptedCreatesEnd: Checker = {
  name: "accepted creates end",
  check(history) {
    if (!history.some(({ what }) => what === "settled" || what === "not-settled"))
      return { kind: "unknown", why: "the run did not wait for its end" };
    const endMs = endOf(history);
    const stuck = serverLives(history).filter(isStuck);
    return outcomeOf([
      ...stuck.map(({ server, deletes, end }) => {
        const was = end === null ? "was accepted and was never seen ACTIVE or ERROR" : `is still ${end.state}`;
        const asked = deletes.some(({ answer }) => answer === "ok") ? " though its delete was accepted" : "";
        return { atMs: endMs, server, what: `server ${server} ${was}${asked}` };
      }),
      // Later states are ignored: these servers may have ended since, or been deleted with the rest.
      ...history.flatMap((line) =>
        line.what === "not-settled" && line.open > 0
          ? [{ atMs: line.atMs, what: `${line.open} servers had not ended when the time to wait was over` }]
          : [],
      ),
    ]);
  },
};
