import { clientCalls } from "../report/client-calls.ts";
import { type Checker, outcomeOf } from "./checker.ts";

const NOT_FOUND = 404;

/** The API never says that an accepted server does not exist as long as no request has deleted it. */
export const nothingLost: Checker = {
  name: "nothing lost",
  check(history) {
    const calls = clientCalls(history);
    const acceptedAt = new Map<string, number>();
    const deleteAt = new Map<string, number>();
    for (const { op, server, answer, fromMs, toMs } of calls) {
      if (server === null) continue;
      if (op === "create" && answer === "ok" && toMs !== null) acceptedAt.set(server, toMs);
      if (op === "delete" && !deleteAt.has(server)) deleteAt.set(server, fromMs);
    }
    return outcomeOf(
      calls.flatMap(({ op, server, status, fromMs, toMs }) => {
        if (op !== "show" || server === null || status !== NOT_FOUND || toMs === null) return [];
        const accepted = acceptedAt.get(server);
        if (accepted === undefined || fromMs < accepted) return [];
        if (toMs >= (deleteAt.get(server) ?? Number.POSITIVE_INFINITY)) return [];
        return [{ atMs: toMs, server, what: `server ${server} was accepted, but the API does not know it` }];
      }),
    );
  },
};
