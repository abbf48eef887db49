import type { TypicalTask } from "./fragmentation-gradient-descent.ts";
import type { ExpectedShape } from "./slot-prices.ts";
import { type GpuAndCpu, gpuMilliSum, type TaskShape } from "./task-shape.ts";

/** The most recent tasks that arrived, whether they found room or not. */
export class RecentTasks {
  readonly #ring: TaskShape[] = [];
  readonly #size: number;
  /** Number of tasks that have ever arrived. */
  seen = 0;

  constructor(size: number) {
    this.#size = size;
  }

  add(task: TaskShape): void {
    this.#ring[this.seen % this.#size] = task;
    this.seen += 1;
  }

  /** Pieces of the past in their order, which begin at even distances. A piece that reaches the present continues with the oldest task. */
  streams(count: number, length: number): TaskShape[][] {
    const known = this.#ring.length;
    const oldest = this.seen > known ? this.seen % known : 0;
    return Array.from({ length: count }, (_, stream) =>
      Array.from({ length }, (__, step) => this.#ring[(oldest + Math.floor((stream * known) / count) + step) % known]!),
    );
  }

  /** All remembered tasks, in no particular order. */
  all(): readonly TaskShape[] {
    return this.#ring;
  }

  /** The remembered shapes that take GPUs, each with its share of all the GPU that they take. */
  gpuDemand(): TypicalTask[] {
    const sums = new Map<TaskShape, number>();
    for (const shape of this.#ring) if (shape.gpus > 0) sums.set(shape, (sums.get(shape) ?? 0) + gpuMilliSum(shape));
    const all = sums.values().reduce((total, sum) => total + sum, 0);
    return [...sums].map(([shape, sum]) => ({ shape, share: sum / all }));
  }

  /** The remembered shapes, each with its part of all remembered tasks. Shapes that take GPUs come first. */
  shapes(): ExpectedShape[] {
    const counts = new Map<TaskShape, number>();
    for (const shape of this.#ring) counts.set(shape, (counts.get(shape) ?? 0) + 1);
    const expected = [...counts].map(([shape, count]) => ({ shape, rate: count / this.#ring.length }));
    return [...expected.filter(({ shape }) => shape.gpus > 0), ...expected.filter(({ shape }) => shape.gpus === 0)];
  }

  /** What a task takes, as the mean over all remembered tasks, including those without a GPU. */
  meanAmounts(): GpuAndCpu {
    const count = Math.max(1, this.#ring.length);
    return {
      cpuMilli: this.#ring.reduce((sum, { cpuMilli }) => sum + cpuMilli, 0) / count,
      gpuMilli: this.#ring.reduce((sum, shape) => sum + gpuMilliSum(shape), 0) / count,
    };
  }
}
