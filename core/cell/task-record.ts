import type { Task } from "../../proto/gen/berth/cell.ts";

/** A task of a server, past or present, as its cell keeps it. Times are milliseconds since the epoch. */
export interface TaskRecord {
  /** As it was stored. Without a server and without work if its bytes cannot be read. */
  readonly task: Task;
  readonly kind: "build" | "delete" | "operate";
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
  /** Null: it has not ended. */
  readonly outcome: TaskOutcome | null;
  /** Of an operation: where it is, and why it goes back ("" while it goes forward). */
  readonly stage: string | null;
  readonly reason: string;
  /** Conductors that took it, the first one first: each carried it until the next one took it. At most TAKINGS_MAX, the youngest. */
  readonly takings: readonly Taking[];
  /** Of an operation: the stages that it reached, the first one first. At most STAGES_MAX, the youngest. */
  readonly stages: readonly ReachedStage[];
}

export type TaskOutcome = "success" | "error" | "deleted" | "cancelled";

/** A conductor took a task that it did not own. */
export interface Taking {
  readonly atMs: number;
  readonly conductorId: string;
  /** Its name then; "" if it had no lease. */
  readonly name: string;
}

export interface ReachedStage {
  readonly atMs: number;
  readonly stage: string;
  /** Which destination was being tried. */
  readonly selection: number;
}

export const TAKINGS_MAX = 20;
export const STAGES_MAX = 100;
/** Operations and deletes of one server that are found, the youngest. */
export const LATER_TASKS_MAX = 100;
