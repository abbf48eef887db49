/** The amounts of a machine that a task takes. Tasks with equal amounts share one object. */
export interface TaskShape {
  /** Counts from 0 in order of first appearance. */
  readonly index: number;
  readonly cpuMilli: number;
  readonly memoryMib: number;
  readonly gpus: number;
  /** Thousandths that it takes of each of its GPUs. Below 1000 it shares its only GPU. 0 without a GPU. */
  readonly gpuMilli: number;
  /** GPU models that it may run on; empty permits any. Meaningless without a GPU. */
  readonly gpuModels: readonly string[];
}

/** An amount of CPU, in thousandths of a core, and one of GPU, in thousandths of a GPU. */
export interface GpuAndCpu {
  readonly cpuMilli: number;
  readonly gpuMilli: number;
}

/** The shape of each task, in the tasks' order. */
export function shapesOf(tasks: readonly Omit<TaskShape, "index">[]): TaskShape[] {
  const known = new Map<string, TaskShape>();
  return tasks.map(({ cpuMilli, memoryMib, gpus, gpuMilli, gpuModels }) => {
    const key = [cpuMilli, memoryMib, gpus, gpuMilli, ...gpuModels].join();
    const shape = known.get(key) ?? { index: known.size, cpuMilli, memoryMib, gpus, gpuMilli, gpuModels };
    known.set(key, shape);
    return shape;
  });
}

/** Whether the task takes a part of one GPU, so that the choice of the GPU matters. */
export function sharesGpu({ gpus, gpuMilli }: TaskShape): boolean {
  return gpus === 1 && gpuMilli < 1000;
}

/** All GPU that the task takes, in thousandths of one. */
export function gpuMilliSum({ gpus, gpuMilli }: TaskShape): number {
  return gpus * gpuMilli;
}

/** Whether the task may run on GPUs of this model. */
export function allowsModel({ gpus, gpuModels }: TaskShape, model: string): boolean {
  return gpus === 0 || gpuModels.length === 0 || gpuModels.includes(model);
}
