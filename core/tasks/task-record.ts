import type { Task } from "../../proto/gen/berth/cell.ts";

/** A task of a server, past or present, as its cell keeps it. Times are milliseconds since the epoch. */
export interface TaskRecord {
  /** The task as it was stored. It has neither server nor work when its bytes cannot be read. */
  readonly task: Task;
  readonly kind: "build" | "delete" | "operate";
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
  /** Null while the task is open. */
  readonly outcome: TaskOutcome | null;
  /** The stage of an operation. `reason` says why it goes back, and is empty while it goes forward. */
  readonly stage: string | null;
  readonly reason: string;
  /**
   * The conductors that took the task, first one first. Each carried it until the next one took it. Only the youngest TAKINGS_MAX are kept.
   */
  readonly takings: readonly Taking[];
  /** The stages that an operation reached, first one first. Only the youngest STAGES_MAX are kept. */
  readonly stages: readonly ReachedStage[];
}

export type TaskOutcome = "success" | "error" | "deleted" | "cancelled";

/** Records that a conductor took a task that it did not own. */
export interface Taking {
  readonly atMs: number;
  readonly conductorId: string;
  /** The conductor's name at that time, or "" when it had no lease. */
  readonly name: string;
}

export interface ReachedStage {
  readonly atMs: number;
  readonly stage: string;
  /** The destination that was being tried. */
  readonly selection: number;
}

export const TAKINGS_MAX = 20;
export const STAGES_MAX = 100;
/** How many operations and deletes of one server are returned, the youngest ones. */
export const LATER_TASKS_MAX = 100;
