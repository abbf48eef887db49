/** What a task takes of a machine. Tasks that take the same are of one shape, one object. */
export interface TaskShape {
  /** From 0 on, in order of first appearance. */
  readonly index: number;
  readonly cpuMilli: number;
  readonly memoryMib: number;
  readonly gpus: number;
  /** Of each of its GPUs, in thousandths; below 1000 it shares its only one. 0 without a GPU. */
  readonly gpuMilli: number;
  /** Models that it may run on; empty: any. Of no meaning without a GPU. */
  readonly gpuModels: readonly string[];
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

/** Whether it takes a part of one GPU, so that it matters which. */
export function sharesGpu({ gpus, gpuMilli }: TaskShape): boolean {
  return gpus === 1 && gpuMilli < 1000;
}

/** All that it takes of GPUs, in thousandths of one. */
export function gpuMilliSum({ gpus, gpuMilli }: TaskShape): number {
  return gpus * gpuMilli;
}

/** Whether it may run on GPUs of this model. */
export function allowsModel({ gpus, gpuModels }: TaskShape, model: string): boolean {
  return gpus === 0 || gpuModels.length === 0 || gpuModels.includes(model);
}
