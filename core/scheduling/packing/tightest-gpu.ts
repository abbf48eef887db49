import type { MachinePark } from "./machine-park.ts";
import type { TaskShape } from "./task-shape.ts";

/** The GPU with the least free part that still suffices, and the first of equals; −1 when there is none. */
export function tightestGpu(park: MachinePark, task: TaskShape, machine: number): number {
  let tightest = -1;
  let least = Number.POSITIVE_INFINITY;
  for (let gpu = 0; gpu < park.gpuCount[machine]!; gpu += 1) {
    const free = park.gpuFree(machine, gpu);
    if (free < task.gpuMilli || free >= least) continue;
    tightest = gpu;
    least = free;
  }
  return tightest;
}
