import { MachinePark } from "../../core/scheduling/packing/machine-park.ts";
import { type PackingPolicyName, packingPolicy } from "../../core/scheduling/packing/packing-policies.ts";
import type { PackingPolicy } from "../../core/scheduling/packing/packing-policy.ts";
import { placeTask } from "../../core/scheduling/packing/place-task.ts";
import { gpuMilliSum, shapesOf } from "../../core/scheduling/packing/task-shape.ts";
import type { Trace } from "../trace.ts";
import { AllocationPoints } from "./allocation-points.ts";
import { drawExperiment } from "./draw-experiment.ts";

export interface Run {
  readonly policy: PackingPolicyName;
  readonly seed: number;
  readonly tasks: number;
  readonly placed: number;
  /** Percentage of all GPUs that is allocated, by percentage of arrivals. */
  readonly allocated: readonly (number | null)[];
}

/** Places one experiment in memory. The machines must have GPUs. Cost: up to some seconds for 10,000 tasks on 1,200 machines. */
export function runExperiment(
  trace: Trace,
  { policy, seed, inflate }: { readonly policy: PackingPolicyName; readonly seed: number; readonly inflate: number },
): Run {
  const workload = shapesOf(trace.tasks);
  const placed = placeDrawn(trace, { seed, inflate }, (park) => packingPolicy(policy, { park, workload, seed }));
  return { policy, seed, ...placed };
}

/** Places the tasks that are drawn for the seed, with any policy. */
export function placeDrawn(
  trace: Trace,
  drawing: { readonly seed: number; readonly inflate: number },
  policyOf: (park: MachinePark) => PackingPolicy,
): Omit<Run, "policy" | "seed"> {
  const drawn = drawExperiment(trace.tasks, trace.machines, drawing);
  const park = new MachinePark(drawn.machines);
  const policy = policyOf(park);
  const points = new AllocationPoints(park.gpuFreeSum.reduce((sum, free) => sum + free, 0));
  let placed = 0;
  for (const shape of shapesOf(drawn.tasks)) {
    const { kind } = placeTask(park, policy, shape);
    if (kind === "placed") placed += 1;
    points.add(gpuMilliSum(shape), kind === "placed");
  }
  return { tasks: drawn.tasks.length, placed, allocated: points.upTo(Math.round(drawing.inflate * 100)) };
}
