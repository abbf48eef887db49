import type { TraceTask } from "./trace.ts";

/** One thing to do, in trace order. */
export interface TraceStep {
  readonly kind: "create" | "delete";
  readonly task: TraceTask;
  /** Seconds since the trace began. */
  readonly at: number;
}

/**
 * All creates and deletes in the order of their times. At the same second what is given back comes before what is taken, but no
 * task goes before it came. With `keep` nothing is deleted.
 */
export function stepsOf(tasks: readonly TraceTask[], options: { readonly keep: boolean }): TraceStep[] {
  const creates = tasks.map((task) => ({ kind: "create" as const, task, at: task.createdAt, rank: 1 }));
  const deletes = options.keep
    ? []
    : tasks.map((task) => ({
        kind: "delete" as const,
        task,
        at: task.deletedAt,
        rank: task.deletedAt > task.createdAt ? 0 : 2,
      }));
  return [...creates, ...deletes]
    .sort((a, b) => a.at - b.at || a.rank - b.rank)
    .map(({ kind, task, at }) => ({ kind, task, at }));
}
