import type { HistoryLine, StateSeen } from "../history-line.ts";
import { type ClientCall, clientCalls } from "./client-calls.ts";

/** The facts about one server in a history. */
export interface ServerLife {
  readonly server: string;
  /** The create request, or null when none is known. */
  readonly create: ClientCall | null;
  /** Every state in which the server was seen, in order. */
  readonly states: readonly StateSeen[];
  /** The first ACTIVE or ERROR; null when neither was seen. */
  readonly end: StateSeen | null;
  /** Requests to delete it, in order. */
  readonly deletes: readonly ClientCall[];
  readonly deleted: StateSeen | null;
}

/** Every server that was accepted or seen, in the order of the create requests. */
export function serverLives(
  history: readonly HistoryLine[],
  calls: readonly ClientCall[] = clientCalls(history),
): readonly ServerLife[] {
  const creates = new Map<string, ClientCall>();
  const deletes = new Map<string, ClientCall[]>();
  const states = new Map<string, StateSeen[]>();
  for (const call of calls) {
    if (call.server === null) continue;
    if (call.op === "create" && call.answer !== "refused" && !creates.has(call.server)) creates.set(call.server, call);
    if (call.op === "delete") listIn(deletes, call.server).push(call);
  }
  for (const line of history) if (line.what === "state") listIn(states, line.server).push(line);
  return [...new Set([...creates.keys(), ...states.keys()])].map((server) => {
    const seen = states.get(server) ?? [];
    return {
      server,
      create: creates.get(server) ?? null,
      states: seen,
      end: seen.find(({ state }) => state !== "DELETED") ?? null,
      deletes: deletes.get(server) ?? [],
      deleted: seen.find(({ state }) => state === "DELETED") ?? null,
    };
  });
}

/** Whether a create or delete was accepted and its result was not seen by the end. */
export function isStuck({ create, end, deletes, deleted }: ServerLife): boolean {
  if (deletes.some(({ answer }) => answer === "ok")) return deleted === null;
  return create?.answer === "ok" && end === null && deleted === null;
}

function listIn<Item>(lists: Map<string, Item[]>, key: string): Item[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
