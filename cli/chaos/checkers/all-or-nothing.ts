import { clientCalls } from "../report/client-calls.ts";
import { endOf } from "../report/fault-spans.ts";
import { type ServerLife, serverLives } from "../report/server-lives.ts";
import { type Checker, type Finding, outcomeOf } from "./checker.ts";

/**
 * Requests without a clear answer were done or were not: a server that such a create left behind ends as any other, once; one that such a
 * delete was meant for is gone for good or lives on. What was refused has not happened: nothing of a refused create turns up,
 * and no server goes by a refused delete alone.
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
        return [{ atMs: toMs ?? endMs, server, what: `server ${server} is there, its create was refused` }];
      }),
    ]);
  },
};

/** Left behind half done by a create that nobody answered for. */
function unfinished({ server, create, end, deleted }: ServerLife, endMs: number): readonly Finding[] {
  if (create === null || create.answer === "ok" || end !== null || deleted !== null) return [];
  return [{ atMs: endMs, server, what: `server ${server} is there, unfinished, by a create without an answer` }];
}

function wrongDelete({ server, deletes, deleted }: ServerLife): readonly Finding[] {
  if (deleted === null) return [];
  const [first] = deletes;
  if (first === undefined)
    return [{ atMs: deleted.atMs, server, what: `server ${server} is gone and nobody deleted it` }];
  if (deletes.some(({ answer }) => answer !== "refused")) return [];
  return [{ atMs: deleted.atMs, server, what: `server ${server} is gone though its delete was refused` }];
}
