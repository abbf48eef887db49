import type { TaskShape } from "./task-shape.ts";

/** Chooses the machine of a park for a task, and the GPU for a share. Each run needs its own object, since some policies learn. */
export interface PackingPolicy {
  /** Called when a task arrives. It is placed next if it fits anywhere. */
  arrive?(task: TaskShape): void;
  /** How good a machine with room is for the task. More is better, and the first of equals is taken. It must not be NaN. */
  score(task: TaskShape, machine: number): number;
  /** Chooses one of the machine's GPUs that has room for a share. */
  chooseGpu(task: TaskShape, machine: number): number;
  /** Called after the task was placed. */
  placed?(task: TaskShape, machine: number): void;
}
