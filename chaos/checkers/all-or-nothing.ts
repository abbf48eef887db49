import { clientCalls } from "../report/client-calls.ts";
import { endOf } from "../report/fault-spans.ts";
import { type ServerLife, serverLives } from "../report/server-lives.ts";
import { type Checker, type Finding, outcomeOf } from "./checker.ts";

/**
 * A request without a clear answer was either carried out completely or not at all. A server left by such a create ends like any other, and
 * exists once. The server of such a delete is either gone for good or still exists. A refused request has no effect: no server appears
 * after a refused create, and none disappears because of a refused delete alone.
 */
export const allOrNothing: Checker = {
  name: "all or nothing",
  check(history) {
    const endMs = endOf(history);
    const wasWaitedFor = history.some(({ what }) => what === "settled" || what === "not-settled");
    return outcomeOf([
      ...serverLives(history).flatMap((life): readonly Finding[] => [
        ...(wasWaitedFor ? unfinished(life, endMs) : []),
        ...wrongDelete(life),
      ]),
      ...clientCalls(history).flatMap(({ op, answer, server, toMs }): readonly Finding[] => {
        if (op !== "create" || answer !== "refused" || server === null) return [];
        return [{ atMs: toMs ?? endMs, server, what: `server ${server} exists, but its create was refused` }];
      }),
    ]);
  },
};

/** Servers that a create without an answer left behind half done. */
function unfinished({ server, create, end, deleted }: ServerLife, endMs: number): readonly Finding[] {
  if (create === null || create.answer === "ok" || end !== null || deleted !== null) return [];
  return [{ atMs: endMs, server, what: `server ${server} exists unfinished, from a create without an answer` }];
}

function wrongDelete({ server, deletes, deleted }: ServerLife): readonly Finding[] {
  if (deleted === null) return [];
  const [first] = deletes;
  if (first === undefined)
    return [{ atMs: deleted.atMs, server, what: `server ${server} is gone, but no request deleted it` }];
  if (deletes.some(({ answer }) => answer !== "refused")) return [];
  return [{ atMs: deleted.atMs, server, what: `server ${server} is gone, but its delete was refused` }];
}
