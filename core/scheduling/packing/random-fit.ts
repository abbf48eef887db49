import { seededRandom } from "../seeded-random.ts";
import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import type { TaskShape } from "./task-shape.ts";

/** Any machine with room, any GPU with room: what packing must be better than. */
export function randomFit(park: MachinePark, seed: number): PackingPolicy {
  const random = seededRandom(seed);
  return {
    // The highest of equally drawn numbers is any of them.
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
