import type { RequestGroup } from "../../candidates/request.ts";
import type { ResourceClass } from "../../ledger/ids.ts";
import type { InventoryColumn } from "../../ledger/inventory-column.ts";
import type { LedgerView } from "../../ledger/view.ts";
import { learnedWaste } from "../packing/fragmentation.ts";
import { WHOLE_GPU } from "../packing/machine-park.ts";
import { RecentTasks } from "../packing/recent-tasks.ts";
import { StateRatings } from "../packing/state-ratings.ts";
import type { TaskShape } from "../packing/task-shape.ts";
import { gpuColumns, isGpuClass } from "./gpu-best-fit.ts";
import type { HostBatch, RelativeWeigher } from "./weigher.ts";

const REMEMBERED = 1024;
/** The past is looked at anew after so many requests, at first sooner. */
const RELEARN_FIRST = 20;
const RELEARN_GROWTH = 1.5;
/** States and shapes that ratings are kept for; then all begins anew. */
const STATES_MAX = 50_000;
const SHAPES_MAX = 1_000;
/** A provider with so many units is one GPU that is shared in parts, not a number of GPUs. */
const SHARED_FROM = 100;
/** CPU is looked at in whole cores, so that states are few. */
const CPU_STEP_MILLI = 1_000;

/**
 * Prefers hosts where a server leaves least GPU that is of no use to what usually comes: the packing experiment's measure of waste
 * (see docs/packing.md), learned from the requests that this scheduler has seen. Says nothing where no host has GPUs.
 *
 * Cost: some 300 ns a host and GPU; the past is looked at anew once in about a thousand requests.
 */
export class GpuFragmentation implements RelativeWeigher {
  readonly name = "gpu_fragmentation";
  readonly kind = "relative";
  readonly #past = new RecentTasks(REMEMBERED);
  readonly #shapes = new Map<string, TaskShape>();
  #waste = learnedWaste(this.#past);
  readonly #ratings = new StateRatings((state) => this.#waste(state));
  #relearnAt = RELEARN_FIRST;
  #version = 0;

  /** Rises when it has learned. */
  get version(): number {
    return this.#version;
  }

  /** A request that is about to be placed, once: what it asks is part of what usually comes. `view`: of any cell with GPUs. */
  arrive(groups: readonly RequestGroup[], view: LedgerView): void {
    this.#past.add(this.#intern(shapeAsked(groups, view)));
    if (this.#past.seen < this.#relearnAt) return;
    this.#relearnAt = Math.min(this.#past.seen * RELEARN_GROWTH, this.#past.seen + REMEMBERED);
    this.#waste = learnedWaste(this.#past);
    this.#ratings.forget();
    this.#version += 1;
  }

  weigh({ request, roots, count }: HostBatch, weights: Float64Array, offset: number): boolean {
    const { view } = request;
    const columns = gpuColumns(view);
    if (columns.length === 0) return false;
    if (this.#ratings.count > STATES_MAX) this.#ratings.clear();
    const shape = this.#intern(shapeAsked(request.request.groups, view));
    for (let index = 0; index < count; index += 1) {
      const root = roots[index]!;
      const state = this.#ratings.stateOf(cpuFree(view, root), "", gpusFree(view, root, columns));
      const rating = this.#ratings.best(shape, state);
      // No GPU of the tree has the room: the combination will show it.
      weights[offset + index] = Number.isFinite(rating) ? rating : 0;
    }
    return true;
  }

  #intern({ cpuMilli, gpus, gpuMilli }: Omit<TaskShape, "index">): TaskShape {
    const key = `${cpuMilli},${gpus},${gpuMilli}`;
    const known = this.#shapes.get(key);
    if (known) return known;
    if (this.#shapes.size >= SHAPES_MAX) {
      this.#shapes.clear();
      this.#ratings.clear();
    }
    const shape = { index: this.#shapes.size, cpuMilli, memoryMib: 0, gpus, gpuMilli, gpuModels: [] };
    this.#shapes.set(key, shape);
    return shape;
  }
}

/** What a request asks of CPU and GPUs, in the experiment's terms: a GPU's thousandths are of what one GPU offers. */
function shapeAsked(groups: readonly RequestGroup[], view: LedgerView): Omit<TaskShape, "index"> {
  let cpuMilli = 0;
  let gpus = 0;
  let gpuMilli = 0;
  for (const { resources } of groups) {
    for (const [name, amount] of resources) {
      cpuMilli += cpuMilliOf(name, amount);
      const column = isGpuClass(name) ? view.column(name) : undefined;
      if (column === undefined) continue;
      const size = sizeOfGpu(column);
      gpus += Math.max(1, Math.floor(amount / size));
      gpuMilli = Math.min(WHOLE_GPU, Math.round((amount * WHOLE_GPU) / size));
    }
  }
  // Several parts of GPUs are taken for whole ones: the measure knows nothing in between.
  return { cpuMilli: stepped(cpuMilli), memoryMib: 0, gpus, gpuMilli: gpus > 1 ? WHOLE_GPU : gpuMilli, gpuModels: [] };
}

function cpuMilliOf(resourceClass: ResourceClass | string, amount: number): number {
  if (resourceClass === "CUSTOM_CPU_MILLI") return amount;
  return resourceClass === "VCPU" || resourceClass === "PCPU" ? amount * 1_000 : 0;
}

function cpuFree(view: LedgerView, root: number): number {
  let free = 0;
  for (const name of view.resourceClasses()) {
    const factor = cpuMilliOf(name, 1);
    if (factor > 0) free += factor * Math.max(0, view.column(name)!.free[root]!);
  }
  return stepped(free);
}

function stepped(milli: number): number {
  return Math.floor(milli / CPU_STEP_MILLI) * CPU_STEP_MILLI;
}

/** Free thousandths of each GPU of a tree. A provider with several of one class has so many whole ones as are free. */
function gpusFree(view: LedgerView, root: number, columns: readonly Readonly<InventoryColumn>[]): number[] {
  const gpus: number[] = [];
  for (const column of columns) {
    const size = sizeOfGpu(column);
    for (const slot of [root, ...view.slots.descendants(root)]) {
      if (!column.has(slot)) continue;
      let free = Math.max(0, column.free[slot]!);
      const count = Math.max(1, Math.round((column.free[slot]! + column.used[slot]!) / size));
      for (let gpu = 0; gpu < count; gpu += 1) {
        const part = Math.min(size, free);
        gpus.push(Math.round((part * WHOLE_GPU) / size));
        free -= part;
      }
    }
  }
  return gpus;
}

const sizes = new WeakMap<Readonly<InventoryColumn>, number>();

/** Units that make one GPU: 1 where GPUs are counted, else what a provider of the class has; GPUs of a class are of one size. */
function sizeOfGpu(column: Readonly<InventoryColumn>): number {
  const known = sizes.get(column);
  if (known !== undefined) return known;
  const slot = column.maxUnit.findIndex((maxUnit) => maxUnit > 0);
  if (slot < 0) return 1;
  const size = column.total[slot]! >= SHARED_FROM ? column.total[slot]! : 1;
  sizes.set(column, size);
  return size;
}
