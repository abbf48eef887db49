import type { MachinePark } from "./machine-park.ts";
import type { PackingPolicy } from "./packing-policy.ts";
import { allowsModel, type TaskShape } from "./task-shape.ts";
import { type MachineState, WasteGradient } from "./waste-gradient.ts";

/** How far back it remembers, in tasks: what is older no longer says what will come. */
const REMEMBERED = 1024;
/** It looks at the past anew after so many tasks, in the beginning after a quarter more than before. */
const RELEARN_EVERY = 512;
const RELEARN_GROWTH = 1.25;
const RELEARN_FIRST = 20;
const STREAMS = 16;
const STREAM_TASKS = 32;

/**
 * Our own. It imagines that pieces of the recent past come again, each to one machine alone, and calls waste what of its GPUs
 * is still free then: a machine short of CPU for its GPUs, or with GPUs cut so that what usually comes leaves holes, wastes much.
 * A task goes where it makes the least of that.
 *
 * It knows nothing of the workload but the tasks that arrived so far, and looks at CPU and GPUs, not at memory.
 */
export function fragmentation(park: MachinePark): PackingPolicy {
  const past = new RecentTasks(REMEMBERED);
  let streams: readonly (readonly TaskShape[])[] = [];
  let relearnAt = 0;
  const gradient = new WasteGradient(park, (state) => expectedLeftover(state, streams));
  return {
    arrive(task) {
      past.add(task);
      if (past.seen < relearnAt) return;
      relearnAt = Math.min(past.seen * RELEARN_GROWTH + RELEARN_FIRST, past.seen + RELEARN_EVERY);
      streams = past.streams(STREAMS, STREAM_TASKS);
      gradient.forget();
    },
    score: (task, machine) => gradient.score(task, machine),
    chooseGpu: (task, machine) => gradient.chooseGpu(task, machine),
    placed: (_, machine) => gradient.changed(machine),
  };
}

/** The last tasks that arrived, whether they found room or not. */
export class RecentTasks {
  readonly #ring: TaskShape[] = [];
  readonly #size: number;
  /** How many ever arrived. */
  seen = 0;

  constructor(size: number) {
    this.#size = size;
  }

  add(task: TaskShape): void {
    this.#ring[this.seen % this.#size] = task;
    this.seen += 1;
  }

  /** Pieces of the past, in its order, that begin at even distances; one that reaches the present goes on with the oldest. */
  streams(count: number, length: number): TaskShape[][] {
    const known = this.#ring.length;
    const oldest = this.seen > known ? this.seen % known : 0;
    return Array.from({ length: count }, (_, stream) =>
      Array.from({ length }, (__, step) => this.#ring[(oldest + Math.floor((stream * known) / count) + step) % known]!),
    );
  }
}

/** What of a machine's GPUs is free after a stream of tasks, of which it takes all that fit: the mean over the streams. */
export function expectedLeftover(state: MachineState, streams: readonly (readonly TaskShape[])[]): number {
  if (state.gpuFreeSum === 0) return 0;
  const gpuFree = new Int32Array(state.gpuFree.length);
  let sum = 0;
  for (const stream of streams) {
    gpuFree.set(state.gpuFree);
    sum += leftoverAfter(state, gpuFree, stream);
  }
  return sum / streams.length;
}

function leftoverAfter(state: MachineState, gpuFree: Int32Array, stream: readonly TaskShape[]): number {
  let { cpuFree, gpuFreeSum } = state;
  for (const task of stream) {
    if (task.cpuMilli > cpuFree) continue;
    if (task.gpus > 0) {
      if (!allowsModel(task, state.model) || !take(gpuFree, task)) continue;
      gpuFreeSum -= task.gpus * task.gpuMilli;
      if (gpuFreeSum === 0) return 0;
    }
    cpuFree -= task.cpuMilli;
  }
  return gpuFreeSum;
}

/** Takes the tightest GPU with room, or as many whole ones as are wanted; false, and takes nothing, if there are not enough. */
function take(gpuFree: Int32Array, { gpus, gpuMilli }: TaskShape): boolean {
  if (gpus > 1) return takeWhole(gpuFree, gpus, gpuMilli);
  let tightest = -1;
  for (let gpu = 0; gpu < gpuFree.length; gpu += 1) {
    if (gpuFree[gpu]! >= gpuMilli && (tightest < 0 || gpuFree[gpu]! < gpuFree[tightest]!)) tightest = gpu;
  }
  if (tightest < 0) return false;
  gpuFree[tightest]! -= gpuMilli;
  return true;
}

function takeWhole(gpuFree: Int32Array, gpus: number, gpuMilli: number): boolean {
  let whole = 0;
  for (const free of gpuFree) if (free >= gpuMilli) whole += 1;
  if (whole < gpus) return false;
  let left = gpus;
  for (let gpu = 0; left > 0; gpu += 1) {
    if (gpuFree[gpu]! < gpuMilli) continue;
    gpuFree[gpu]! -= gpuMilli;
    left -= 1;
  }
  return true;
}
