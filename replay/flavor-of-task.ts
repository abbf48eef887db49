import { CPU_CLASS, GPU_CLASS, gpuTrait, MEMORY_CLASS } from "./map-machines.ts";
import type { TraceTask } from "./trace.ts";

/** A flavor as the Compute API creates it. */
export interface ReplayFlavor {
  /** Tasks with the same demands share one flavor. */
  readonly id: string;
  readonly vcpus: number;
  readonly memoryMib: number;
  readonly extraSpecs: Readonly<Record<string, string>>;
}

/**
 * The flavor of a task. CPU is in thousandths instead of VCPUs. Each GPU has a request group of its own, so that a task of n GPUs gets n
 * different ones of one machine. Models are chosen by forbidding the other models of the trace, because a group cannot ask for any of
 * several models in another way.
 */
export function flavorOfTask(task: TraceTask, models: readonly string[]): ReplayFlavor {
  const extraSpecs: Record<string, string> = { "resources:VCPU": "0", "resources:DISK_GB": "0" };
  if (task.memoryMib === 0) extraSpecs[`resources:${MEMORY_CLASS}`] = "0";
  if (task.cpuMilli > 0) extraSpecs[`resources:${CPU_CLASS}`] = String(task.cpuMilli);
  for (let group = 1; group <= task.gpus; group += 1) {
    extraSpecs[`resources${group}:${GPU_CLASS}`] = String(task.gpuMilli);
    if (task.gpuModels.length === 0) continue;
    for (const model of models) {
      if (!task.gpuModels.includes(model)) extraSpecs[`trait${group}:${gpuTrait(model)}`] = "forbidden";
    }
  }
  if (task.gpus > 1) extraSpecs.group_policy = "isolate";
  const gpuPart = task.gpus === 0 ? "" : `-g${task.gpus}x${task.gpuMilli}`;
  const modelPart = task.gpuModels.length === 0 ? "" : `-${task.gpuModels.toSorted().join("-")}`;
  return {
    id: `replay-c${task.cpuMilli}-m${task.memoryMib}${gpuPart}${modelPart}`,
    vcpus: Math.max(1, Math.ceil(task.cpuMilli / 1000)),
    // The Compute API requires at least 1; the extra spec above overrides it.
    memoryMib: Math.max(1, task.memoryMib),
    extraSpecs,
  };
}
