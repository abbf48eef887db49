import { type MachinePark, WHOLE_GPU } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import { sharesGpu, type TaskShape } from "./task-shape.ts";
import { tightestGpu } from "./tightest-gpu.ts";

/** Prefers GPUs that are already shared, then whole GPUs of machines in use, then those of empty machines. */
export function gpuPacking(park: MachinePark): PackingPolicy {
  return {
    score(task, machine) {
      if (task.gpus === 0) return 0;
      const whole = park.gpusWhole[machine]!;
      // Among empty machines the smaller one is better.
      if (whole === park.gpuCount[machine]!) return Math.max(33 - whole, whole);
      const opened = opens(park, task, machine);
      if (opened > 0) return Math.max(50 - opened, 33);
      const free = park.gpuFree(machine, tightestGpu(park, task, machine));
      return Math.max(100 - Math.trunc(Math.trunc((free * 100) / WHOLE_GPU) / 10), 50);
    },
    chooseGpu: (task, machine) => tightestGpu(park, task, machine),
  };
}

/** How many whole GPUs the task would take or begin to share. */
function opens(park: MachinePark, task: TaskShape, machine: number): number {
  if (!sharesGpu(task)) return task.gpus;
  return park.gpuFree(machine, tightestGpu(park, task, machine)) === WHOLE_GPU ? 1 : 0;
}
