import { serverLives } from "../report/server-lives.ts";
import { type Checker, outcomeOf } from "./checker.ts";

/** A look that was under way when the delete was answered may still show what was before. */
const LOOK_MS = 10_000;

/**
 * A server that was seen gone never comes back; and one whose delete was accepted does not become ACTIVE or ERROR afterwards, except as seen
 * by a look that was under way at that moment (`lookMs`, 10 s).
 */
export function deletedStaysDeleted({ lookMs = LOOK_MS }: { readonly lookMs?: number } = {}): Checker {
  return {
    name: "deleted stays deleted",
    check: (history) =>
      outcomeOf(
        serverLives(history).flatMap(({ server, states, deletes, deleted }) => {
          const accepted = deletes.find(({ answer }) => answer === "ok")?.toMs ?? Number.POSITIVE_INFINITY;
          const back = states.find(({ atMs, state }) => {
            if (state === "DELETED") return false;
            return atMs > accepted + lookMs || (deleted !== null && atMs > deleted.atMs);
          });
          if (back === undefined) return [];
          return [{ atMs: back.atMs, server, what: `server ${server} is ${back.state} after it was deleted` }];
        }),
      ),
  };
}
