import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import { sharesGpu, type TaskShape } from "./task-shape.ts";

export type TaskPlacement = { readonly kind: "placed"; readonly machine: number } | { readonly kind: "no-room" };

/** Places an arriving task on the machine with the highest score. Cost: one score for each machine with room. */
export function placeTask(park: MachinePark, policy: PackingPolicy, task: TaskShape): TaskPlacement {
  policy.arrive?.(task);
  let machine = -1;
  let best = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < park.count; at += 1) {
    if (!park.fits(task, at)) continue;
    const score = policy.score(task, at);
    if (machine >= 0 && score <= best) continue;
    machine = at;
    best = score;
  }
  if (machine < 0) return { kind: "no-room" };
  park.place(task, machine, sharesGpu(task) ? policy.chooseGpu(task, machine) : -1);
  policy.placed?.(task, machine);
  return { kind: "placed", machine };
}
