import type { TraceTask } from "./trace.ts";

/** One step of a replay. */
export interface TraceStep {
  readonly kind: "create" | "delete";
  readonly task: TraceTask;
  /** Seconds since the trace began. */
  readonly at: number;
}

/**
 * All creates and deletes, ordered by time. In the same second, deletes come before creates, but no task is deleted before it was created.
 * With `keep` there are no deletes.
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
