import { BIGGEST_MACHINE } from "./biggest-machine.ts";
import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import { sharesGpu, type TaskShape } from "./task-shape.ts";
import { tightestGpu } from "./tightest-gpu.ts";

/**
 * Keeps tasks of one kind (shares, 1 GPU, 2 GPUs, …) together. It prefers a machine that has only the task's kind, then one that has it
 * among others, then an empty one, then one of other kinds. Among equals it prefers the fuller machine.
 */
export function gpuClustering(park: MachinePark): PackingPolicy {
  const kinds = Array.from({ length: park.count }, () => new Set<number>());
  return {
    score(task, machine) {
      if (task.gpus === 0) return 0;
      const present = kinds[machine]!;
      const full = Math.trunc((25 * (BIGGEST_MACHINE.gpuMilli - park.gpuFreeSum[machine]!)) / BIGGEST_MACHINE.gpuMilli);
      if (present.has(kindOf(task))) return full + (present.size === 1 ? 75 : 50);
      return full + (present.size === 0 ? 25 : 0);
    },
    chooseGpu: (task, machine) => tightestGpu(park, task, machine),
    placed(task, machine) {
      if (task.gpus > 0) kinds[machine]!.add(kindOf(task));
    },
  };
}

/** The kind of a task: 0 for a share, otherwise the number of whole GPUs. */
function kindOf(task: TaskShape): number {
  return sharesGpu(task) ? 0 : task.gpus;
}
