import type { AttemptResult, ServerStatus } from "./server.ts";
import type { ReachedStage } from "./task-record.ts";

/** The records of the database about a guest's server and about the task that made the guest. */
export interface StartRecord {
  readonly status: ServerStatus | "CLOSED";
  /** Null when the database does not have the task. */
  readonly task: {
    readonly kind: "build" | "delete" | "operate";
    /** The result of the guest's attempt, or null while there is none. Undefined when there is no such attempt. */
    readonly result: AttemptResult | null | undefined;
    /** The stages that an operation reached. The oldest may be missing. */
    readonly stages: readonly Pick<ReachedStage, "stage" | "selection">[];
  } | null;
  readonly selection: number;
}

/**
 * Whether the guest may have been told to start, as far as the database knows. A build starts its guest only after the attempt has
 * succeeded, and a move only after it has reached `starting` with that guest. So if a guest has run and neither is recorded, the database
 * has lost the commits that started it. Records from before the lists of stages cannot tell, and the start then counts as known. It also
 * counts as known for a deleted server, whose guest may be destroyed whether or not it ran.
 */
export function isStartKnown({ status, task, selection }: StartRecord): boolean {
  if (status === "DELETED" || task === null) return true;
  if (task.kind === "build") return task.result === undefined || task.result === "success";
  const reached = (stage: string) => task.stages.some((one) => one.stage === stage && one.selection === selection);
  return !reached("preparing") || reached("starting");
}
