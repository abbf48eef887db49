import { seededRandom } from "../seeded-random.ts";
import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import type { TaskShape } from "./task-shape.ts";

/** Takes any machine and any GPU with room: the baseline that other policies must beat. */
export function randomFit(park: MachinePark, seed: number): PackingPolicy {
  const random = seededRandom(seed);
  return {
    // The highest of random numbers selects each machine with equal probability.
    score: () => random(),
    chooseGpu(task: TaskShape, machine: number): number {
      let chosen = -1;
      let seen = 0;
      for (let gpu = 0; gpu < park.gpuCount[machine]!; gpu += 1) {
        if (park.gpuFree(machine, gpu) < task.gpuMilli) continue;
        seen += 1;
        if (random() * seen < 1) chosen = gpu;
      }
      return chosen;
    },
  };
}
