import { WHOLE_GPU } from "./machine-park.ts";
import type { MachineState } from "./state-ratings.ts";
import { allowsModel, type TaskShape } from "./task-shape.ts";

/** Streams of tasks, arranged for many imagined runs. */
export class ImaginedStreams {
  readonly count: number;
  readonly #tasks: readonly TaskShape[];
  readonly #length: number;
  readonly #cpuMilli: Int32Array;
  readonly #gpus: Int32Array;
  readonly #gpuMilli: Int32Array;
  /** 1 for a task that may not run on every model. */
  readonly #picky: Uint8Array;
  readonly #gpuFree = new Int32Array(64);

  /** All streams must have the same length. */
  constructor(streams: readonly (readonly TaskShape[])[]) {
    this.count = streams.length;
    this.#length = streams[0]?.length ?? 0;
    this.#tasks = streams.flat();
    this.#cpuMilli = Int32Array.from(this.#tasks, ({ cpuMilli }) => cpuMilli);
    this.#gpus = Int32Array.from(this.#tasks, ({ gpus }) => gpus);
    this.#gpuMilli = Int32Array.from(this.#tasks, ({ gpuMilli }) => gpuMilli);
    this.#picky = Uint8Array.from(this.#tasks, ({ gpuModels }) => (gpuModels.length > 0 ? 1 : 0));
  }

  /** The part of a machine's GPUs that is free after a stream, from which it takes every task that fits, as the mean over all streams. */
  expectedLeftover(state: MachineState): number {
    if (state.gpuFreeSum === 0 || this.count === 0) return 0;
    let sum = 0;
    for (let stream = 0; stream < this.count; stream += 1) sum += this.#leftoverAfter(stream, state);
    return sum / this.count;
  }

  #leftoverAfter(stream: number, state: MachineState): number {
    const { gpuFree } = state;
    let { cpuFree, gpuFreeSum } = state;
    for (let gpu = 0; gpu < gpuFree.length; gpu += 1) this.#gpuFree[gpu] = gpuFree[gpu]!;
    const end = (stream + 1) * this.#length;
    for (let at = stream * this.#length; at < end; at += 1) {
      if (this.#cpuMilli[at]! > cpuFree) continue;
      const gpus = this.#gpus[at]!;
      if (gpus > 0) {
        const gpuMilli = this.#gpuMilli[at]!;
        if (this.#picky[at] === 1 && !allowsModel(this.#tasks[at]!, state.model)) continue;
        if (!this.#take(gpuFree.length, gpus, gpuMilli)) continue;
        gpuFreeSum -= gpus * gpuMilli;
        if (gpuFreeSum === 0) return 0;
      }
      cpuFree -= this.#cpuMilli[at]!;
    }
    return gpuFreeSum;
  }

  /** Takes the tightest GPU with room, or as many whole GPUs as requested. Returns false and takes nothing when there are not enough. */
  #take(count: number, gpus: number, gpuMilli: number): boolean {
    const gpuFree = this.#gpuFree;
    if (gpus > 1) return this.#takeWhole(count, gpus);
    let tightest = -1;
    let least = Number.POSITIVE_INFINITY;
    for (let gpu = 0; gpu < count; gpu += 1) {
      const free = gpuFree[gpu]!;
      if (free < gpuMilli || free >= least) continue;
      tightest = gpu;
      least = free;
    }
    if (tightest < 0) return false;
    gpuFree[tightest]! -= gpuMilli;
    return true;
  }

  #takeWhole(count: number, gpus: number): boolean {
    const gpuFree = this.#gpuFree;
    let whole = 0;
    for (let gpu = 0; gpu < count; gpu += 1) if (gpuFree[gpu] === WHOLE_GPU) whole += 1;
    if (whole < gpus) return false;
    let left = gpus;
    for (let gpu = 0; left > 0; gpu += 1) {
      if (gpuFree[gpu] !== WHOLE_GPU) continue;
      gpuFree[gpu] = 0;
      left -= 1;
    }
    return true;
  }
}
