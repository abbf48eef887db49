import { clientCalls } from "../report/client-calls.ts";
import { serverLives } from "../report/server-lives.ts";
import { type Checker, type Finding, outcomeOf } from "./checker.ts";

const OK = 200;

/**
 * A server that was seen gone never comes back. With `lookMs`, for clouds in which every cell can be reached, a server also never becomes
 * ACTIVE or ERROR after its delete was accepted, unless a look that took up to `lookMs` was already under way at that moment. A cell that
 * cannot be reached continues to build until it hears of the delete.
 */
export function deletedStaysDeleted({ lookMs = Number.POSITIVE_INFINITY }: { readonly lookMs?: number } = {}): Checker {
  return {
    name: "deleted stays deleted",
    check(history) {
      const calls = clientCalls(history);
      const shows = Map.groupBy(
        calls.filter(({ op, status }) => op === "show" && status === OK),
        ({ server }) => server,
      );
      return outcomeOf(
        serverLives(history, calls).flatMap(({ server, states, deletes, deleted }): readonly Finding[] => {
          const accepted = deletes.find(({ answer }) => answer === "ok")?.toMs ?? Number.POSITIVE_INFINITY;
          const goneMs = deleted?.atMs ?? Number.POSITIVE_INFINITY;
          const back = states.find(
            ({ atMs, state }) => state !== "DELETED" && (atMs > accepted + lookMs || atMs > goneMs),
          );
          if (back)
            return [{ atMs: back.atMs, server, what: `server ${server} is ${back.state} after it was deleted` }];
          const shown = shows.get(server)?.find(({ fromMs }) => fromMs > goneMs);
          if (shown === undefined) return [];
          return [{ atMs: shown.fromMs, server, what: `server ${server} exists again after it was deleted` }];
        }),
      );
    },
  };
}
