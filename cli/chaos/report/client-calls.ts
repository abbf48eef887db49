import type { Answered, ClientOperation, HistoryLine } from "../history-line.ts";

/** A request of a client with what became of it. */
export interface ClientCall {
  readonly id: number;
  readonly client: string;
  readonly op: ClientOperation;
  readonly fromMs: number;
  /** When its answer was there, or given up; null: the history ends before. */
  readonly toMs: number | null;
  readonly answer: Answered["what"] | null;
  readonly server: string | null;
  readonly reason: string | null;
  readonly status: number | null;
}

/** All requests, in the order in which they were sent. */
export function clientCalls(history: readonly HistoryLine[]): readonly ClientCall[] {
  const answers = new Map<number, Answered>();
  for (const line of history) if (isAnswer(line)) answers.set(line.id, line);
  const calls: ClientCall[] = [];
  for (const line of history) {
    if (line.what !== "invoke") continue;
    const answer = answers.get(line.id);
    calls.push({
      ...{ id: line.id, client: line.who, op: line.op, fromMs: line.atMs },
      toMs: answer?.atMs ?? null,
      answer: answer?.what ?? null,
      server: answer?.server ?? line.server ?? null,
      reason: answer?.reason ?? null,
      status: answer?.status ?? null,
    });
  }
  return calls;
}

export function isAnswer(line: HistoryLine): line is Answered {
  return line.what === "ok" || line.what === "refused" || line.what === "unknown";
}
