import type { TaskShape } from "./task-shape.ts";

/** Says on which machine of a park a task should go, and a share on which of its GPUs. One for each run: some learn. */
export interface PackingPolicy {
  /** A task arrives and will be placed next, if it fits anywhere. */
  arrive?(task: TaskShape): void;
  /** How good a machine with room is for the task: more is better, the first of equals is taken. Must not be NaN. */
  score(task: TaskShape, machine: number): number;
  /** For a share: which of the machine's GPUs, one with room. */
  chooseGpu(task: TaskShape, machine: number): number;
  /** The task was placed. */
  placed?(task: TaskShape, machine: number): void;
}
