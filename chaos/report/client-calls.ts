import type { Answered, ClientOperation, HistoryLine } from "../history-line.ts";

/** A request of a client, with its outcome. */
export interface ClientCall {
  readonly id: number;
  readonly client: string;
  readonly op: ClientOperation;
  readonly fromMs: number;
  /** When the request was answered or given up; null when the history ends before that. */
  readonly toMs: number | null;
  /** Null when there was no answer. A 404 to a show or a delete counts as `ok`, with status 404. */
  readonly answer: Answered["what"] | null;
  /** The server that the runner found by name after a create that was not accepted. */
  readonly server: string | null;
  readonly reason: string | null;
  readonly status: number | null;
}

/** All requests, in the order in which they were sent. */
export function clientCalls(history: readonly HistoryLine[]): readonly ClientCall[] {
  const answers = new Map<number, Answered>();
  const found = new Map<number, string>();
  for (const line of history) {
    if (isAnswer(line)) answers.set(line.id, line);
    else if (line.what === "found") found.set(line.id, line.server);
  }
  const calls: ClientCall[] = [];
  for (const line of history) {
    if (line.what !== "invoke") continue;
    const answer = answers.get(line.id);
    calls.push({
      ...{ id: line.id, client: line.who, op: line.op, fromMs: line.atMs },
      toMs: answer?.atMs ?? null,
      answer: answer === undefined ? null : meaningOf(answer),
      server: answer?.server ?? line.server ?? found.get(line.id) ?? null,
      reason: answer?.reason ?? null,
      status: answer?.status ?? null,
    });
  }
  return calls;
}

const NOT_FOUND = 404;

function meaningOf({ what, op, status }: Answered): Answered["what"] {
  return status === NOT_FOUND && (op === "show" || op === "delete") ? "ok" : what;
}

export function isAnswer(line: HistoryLine): line is Answered {
  return line.what === "ok" || line.what === "refused" || line.what === "unknown";
}
