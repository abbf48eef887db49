import type { PackingPolicyName } from "../../core/scheduling/packing/packing-policies.ts";
import { TraceError } from "../trace.ts";

export const PUBLISHED_FILE = "published_gpu_allocation.csv";

const PUBLISHED_NAMES: ReadonlyMap<string, PackingPolicyName> = new Map([
  ["01-Random", "random"],
  ["02-DotProd", "dot-product"],
  ["03-GpuClustering", "gpu-clustering"],
  ["04-GpuPacking", "gpu-packing"],
  ["05-BestFit", "best-fit"],
  ["06-FGD", "fgd"],
]);
const KEY_COLUMNS = ["workload", "sc_policy", "tune", "seed", "total_gpus"];

export interface PublishedRun {
  readonly policy: PackingPolicyName;
  readonly seed: number;
  /** Percentage of all GPUs that is allocated, by percentage of arrivals. */
  readonly allocated: readonly (number | null)[];
}

/** Parses the published runs of one list of tasks, for the policies that are known here. Throws a TraceError on the first bad line. */
export function parsePublished(
  file: string,
  content: string,
  wanted: { readonly tasks: string; readonly inflate: number },
): PublishedRun[] {
  const [header = "", ...lines] = content.trimEnd().split(/\r?\n/);
  const columns = header.split(",");
  const points = columns.slice(KEY_COLUMNS.length);
  if (!header.startsWith(KEY_COLUMNS.join()) || points.some((point, at) => point !== String(at)))
    throw new TraceError(file, 1, `the header must be ${KEY_COLUMNS.join()},0,1,2,…`);
  return lines.flatMap((line, index) => {
    const cells = line.split(",");
    const [workload, name = "", tune, seed, , ...values] = cells;
    if (cells.length !== columns.length || values.some((value) => Number.isNaN(Number(value))))
      throw new TraceError(file, index + 2, `it must have ${columns.length} columns, numbers from the sixth on`);
    const policy = PUBLISHED_NAMES.get(name);
    if (workload !== wanted.tasks || Number(tune) !== wanted.inflate || policy === undefined) return [];
    const allocated = values.map((value) => (value === "" ? null : Number(value)));
    return [{ policy, seed: Number(seed), allocated }];
  });
}
