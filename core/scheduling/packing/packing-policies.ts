import { bestFitPolicy } from "./best-fit-policy.ts";
import { dotProduct } from "./dot-product.ts";
import { fragmentation } from "./fragmentation.ts";
import { fragmentationGradientDescent } from "./fragmentation-gradient-descent.ts";
import { gpuClustering } from "./gpu-clustering.ts";
import { gpuPacking } from "./gpu-packing.ts";
import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import { randomFit } from "./random-fit.ts";
import type { TaskShape } from "./task-shape.ts";

export const PACKING_POLICIES = [
  "random",
  "dot-product",
  "gpu-clustering",
  "gpu-packing",
  "best-fit",
  "fgd",
  "fragmentation",
] as const;
export type PackingPolicyName = (typeof PACKING_POLICIES)[number];

/** Makes a policy for one run. `workload` is the list from which tasks are drawn; only `fgd` may read it. */
export function packingPolicy(
  name: PackingPolicyName,
  run: { readonly park: MachinePark; readonly workload: readonly TaskShape[]; readonly seed: number },
): PackingPolicy {
  switch (name) {
    case "random":
      return randomFit(run.park, run.seed);
    case "dot-product":
      return dotProduct(run.park);
    case "gpu-clustering":
      return gpuClustering(run.park);
    case "gpu-packing":
      return gpuPacking(run.park);
    case "best-fit":
      return bestFitPolicy(run.park);
    case "fgd":
      return fragmentationGradientDescent(run.park, run.workload);
    case "fragmentation":
      return fragmentation(run.park);
    default:
      return name satisfies never;
  }
}
