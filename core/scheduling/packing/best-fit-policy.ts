import { BIGGEST_MACHINE } from "./biggest-machine.ts";
import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import { gpuMilliSum } from "./task-shape.ts";
import { tightestGpu } from "./tightest-gpu.ts";

/** Prefers the machine that is left with the least CPU and GPU, in whole per cent of the biggest machine. */
export function bestFitPolicy(park: MachinePark): PackingPolicy {
  return {
    score(task, machine) {
      const cpuLeft = (park.cpuFree[machine]! - task.cpuMilli) / BIGGEST_MACHINE.cpuMilli;
      const gpuLeft = (park.gpuFreeSum[machine]! - gpuMilliSum(task)) / BIGGEST_MACHINE.gpuMilli;
      return Math.trunc((1 - (cpuLeft * 0.5 + gpuLeft * 0.5)) * 100);
    },
    chooseGpu: (task, machine) => tightestGpu(park, task, machine),
  };
}
