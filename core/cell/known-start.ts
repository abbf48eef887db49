import type { AttemptResult, ServerStatus } from "./server.ts";
import type { ReachedStage } from "./task-record.ts";

/** What the database has of a guest's server and of the task that made the guest. */
export interface StartRecord {
  readonly status: ServerStatus | "CLOSED";
  /** Null: the database does not have the task. */
  readonly task: {
    readonly kind: "build" | "delete" | "operate";
    /** What became of the guest's attempt; null: nothing yet. Undefined: there is no such attempt. */
    readonly result: AttemptResult | null | undefined;
    /** Of an operation; the oldest ones may be missing. */
    readonly stages: readonly Pick<ReachedStage, "stage" | "selection">[];
  } | null;
  readonly selection: number;
}

/**
 * Whether the guest may have been told to start, as far as the database knows. A build's guest is started only after its attempt has succeeded, a
 * move's only after the move has reached `starting` with it. So a guest that has run although neither is recorded was started by commits that
 * the database has lost. Where the record cannot tell, because it is older than the lists of stages, the start counts as known. What an owner has
 * deleted is deleted, whether or not it ran.
 */
export function isStartKnown({ status, task, selection }: StartRecord): boolean {
  if (status === "DELETED" || task === null) return true;
  if (task.kind === "build") return task.result === undefined || task.result === "success";
  const reached = (stage: string) => task.stages.some((one) => one.stage === stage && one.selection === selection);
  return !reached("preparing") || reached("starting");
}
