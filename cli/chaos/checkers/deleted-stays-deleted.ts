import { serverLives } from "../report/server-lives.ts";
import { type Checker, outcomeOf } from "./checker.ts";

/**
 * A server that was seen gone never comes back. With `lookMs`, for clouds in which every cell can be reached: nor does one become ACTIVE or
 * ERROR whose delete was accepted, except as seen by a look that was under way at that moment and took so long. A cell that cannot
 * be reached builds on until it hears of the delete.
 */
export function deletedStaysDeleted({ lookMs = Number.POSITIVE_INFINITY }: { readonly lookMs?: number } = {}): Checker {
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
