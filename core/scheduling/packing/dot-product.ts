import { BIGGEST_MACHINE } from "./biggest-machine.ts";
import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import { gpuMilliSum } from "./task-shape.ts";
import { tightestGpu } from "./tightest-gpu.ts";

/** Prefers the machine whose free CPU and GPU have the smallest dot product with the task's amounts, in whole per cent. */
export function dotProduct(park: MachinePark): PackingPolicy {
  return {
    score(task, machine) {
      const cpu = (park.cpuFree[machine]! / BIGGEST_MACHINE.cpuMilli) * (task.cpuMilli / BIGGEST_MACHINE.cpuMilli);
      const gpu =
        (park.gpuFreeSum[machine]! / BIGGEST_MACHINE.gpuMilli) * (gpuMilliSum(task) / BIGGEST_MACHINE.gpuMilli);
      return Math.trunc(100 * (1 - (cpu + gpu) / 2));
    },
    chooseGpu: (task, machine) => tightestGpu(park, task, machine),
  };
}
