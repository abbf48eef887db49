import { assert } from "../../assert.ts";
import { allowsModel, gpuMilliSum, sharesGpu, type TaskShape } from "./task-shape.ts";

export interface MachineShape {
  readonly cpuMilli: number;
  readonly memoryMib: number;
  readonly gpus: number;
  readonly gpuModel: string;
}

export const WHOLE_GPU = 1000;

/** Machines and their free resources: CPU in thousandths of a core, memory in MiB, each GPU in thousandths of itself. */
export class MachinePark {
  readonly count: number;
  readonly models: readonly string[];
  readonly gpuCount: Int32Array;
  readonly cpuFree: Int32Array;
  readonly memoryFree: Int32Array;
  /** Sum over all GPUs of a machine. */
  readonly gpuFreeSum: Int32Array;
  /** Number of GPUs that are entirely free. */
  readonly gpusWhole: Int32Array;
  /** The free part of the GPU that has most free. */
  readonly gpuFreeMax: Int32Array;
  readonly #gpuFree: Int32Array;
  readonly #stride: number;

  constructor(machines: readonly MachineShape[]) {
    this.count = machines.length;
    this.models = machines.map(({ gpuModel }) => gpuModel);
    this.gpuCount = Int32Array.from(machines, ({ gpus }) => gpus);
    this.cpuFree = Int32Array.from(machines, ({ cpuMilli }) => cpuMilli);
    this.memoryFree = Int32Array.from(machines, ({ memoryMib }) => memoryMib);
    this.gpusWhole = Int32Array.from(this.gpuCount);
    this.gpuFreeSum = this.gpuCount.map((gpus) => gpus * WHOLE_GPU);
    this.gpuFreeMax = this.gpuCount.map((gpus) => (gpus > 0 ? WHOLE_GPU : 0));
    this.#stride = Math.max(0, ...this.gpuCount);
    this.#gpuFree = new Int32Array(this.count * this.#stride).fill(WHOLE_GPU);
  }

  gpuFree(machine: number, gpu: number): number {
    return this.#gpuFree[machine * this.#stride + gpu]!;
  }

  /** Whether everything that the task takes is free. Cost: a few nanoseconds. */
  fits(task: TaskShape, machine: number): boolean {
    if (this.cpuFree[machine]! < task.cpuMilli || this.memoryFree[machine]! < task.memoryMib) return false;
    if (task.gpus === 0) return true;
    const enough = task.gpus === 1 ? this.gpuFreeMax[machine]! >= task.gpuMilli : this.gpusWhole[machine]! >= task.gpus;
    return enough && allowsModel(task, this.models[machine]!);
  }

  /** Takes the task's resources: a share of `gpu`, or the first whole GPUs. The task must fit. */
  place(task: TaskShape, machine: number, gpu: number): void {
    assert(this.fits(task, machine), "a task is placed where it does not fit");
    this.cpuFree[machine]! -= task.cpuMilli;
    this.memoryFree[machine]! -= task.memoryMib;
    if (task.gpus === 0) return;
    const first = machine * this.#stride;
    if (sharesGpu(task)) {
      assert(this.gpuFree(machine, gpu) >= task.gpuMilli, "a share is placed on a GPU without room");
      this.#gpuFree[first + gpu]! -= task.gpuMilli;
    } else {
      let left = task.gpus;
      for (let at = first; left > 0; at += 1) {
        if (this.#gpuFree[at] !== WHOLE_GPU) continue;
        this.#gpuFree[at] = 0;
        left -= 1;
      }
    }
    this.#sumUp(machine, task);
  }

  #sumUp(machine: number, task: TaskShape): void {
    this.gpuFreeSum[machine]! -= gpuMilliSum(task);
    let whole = 0;
    let max = 0;
    for (let gpu = 0; gpu < this.gpuCount[machine]!; gpu += 1) {
      const free = this.gpuFree(machine, gpu);
      if (free === WHOLE_GPU) whole += 1;
      max = Math.max(max, free);
    }
    this.gpusWhole[machine] = whole;
    this.gpuFreeMax[machine] = max;
  }
}
