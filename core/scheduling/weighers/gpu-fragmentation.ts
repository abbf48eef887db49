import type { RequestGroup } from "../../candidates/request.ts";
import type { ResourceClass } from "../../ledger/ids.ts";
import type { InventoryColumn } from "../../ledger/inventory-column.ts";
import type { LedgerView } from "../../ledger/view.ts";
import { DEMAND_REMEMBERED, learnedWaste, REMEMBERED } from "../packing/fragmentation.ts";
import { LearningSchedule } from "../packing/learning-schedule.ts";
import { WHOLE_GPU } from "../packing/machine-park.ts";
import { RecentTasks } from "../packing/recent-tasks.ts";
import { SlotPrices } from "../packing/slot-prices.ts";
import { StateRatings } from "../packing/state-ratings.ts";
import type { TaskShape } from "../packing/task-shape.ts";
import { gpuColumns, isGpuClass } from "./gpu-best-fit.ts";
import type { HostBatch, RelativeWeigher } from "./weigher.ts";

/** States and shapes that ratings are kept for; beyond that, all are forgotten. */
const STATES_MAX = 50_000;
const SHAPES_MAX = 1_000;
/** A provider with so many units is one GPU that is shared in parts, not a number of GPUs. */
const SHARED_FROM = 100;
/** CPU is looked at in whole cores, so that states are few. */
const CPU_STEP_MILLI = 1_000;

/** Fewer requests say nothing about the usual ones. */
const LEARN_FROM = 20;
/** Hosts that are looked at to count slots; of more hosts every n-th one counts for n. */
const CENSUS_HOSTS_MAX = 20_000;
/** Kinds of hosts that slots of whole hosts are counted for. */
const KINDS_MAX = 50;

/**
 * Prefers hosts where a server leaves least GPU useless to the usual requests, and uses up the least of the room that large requests
 * need: the measures of the packing experiment (see docs/packing.md), learned from the requests that this scheduler has seen. Says
 * nothing where no host has GPUs.
 *
 * Cost: some 500 ns a host and GPU. Once in about a thousand requests it learns: it looks at up to 20,000 hosts, in tens of
 * milliseconds.
 */
export class GpuFragmentation implements RelativeWeigher {
  readonly name = "gpu_fragmentation";
  readonly kind = "relative";
  readonly #views: () => readonly LedgerView[];
  readonly #past = new RecentTasks(REMEMBERED);
  readonly #demand = new RecentTasks(DEMAND_REMEMBERED);
  readonly #learning = new LearningSchedule(REMEMBERED);
  readonly #shapes = new Map<string, TaskShape>();
  readonly #ratings: StateRatings;
  readonly #slots: SlotPrices;
  #waste = learnedWaste(this.#past);
  #version = 0;

  /** `views` returns the views of all cells, whose hosts have the slots. */
  constructor(views: () => readonly LedgerView[] = () => []) {
    this.#views = views;
    this.#ratings = new StateRatings(
      (state) => this.#waste(state),
      (saved, before, after) => saved - this.#slots.lost(before, after),
    );
    this.#slots = new SlotPrices((state) => this.#ratings.stateAt(state));
  }

  /** Rises when it has learned. */
  get version(): number {
    return this.#version;
  }

  /** A request that is about to be placed, once: it counts as one of the usual requests. `view` is of any cell with GPUs. */
  arrive(groups: readonly RequestGroup[], view: LedgerView): void {
    const shape = this.#intern(shapeAsked(groups, view));
    this.#past.add(shape);
    this.#demand.add(shape);
    if (this.#past.seen < LEARN_FROM || !this.#learning.isDue(this.#past.seen)) return;
    this.#waste = learnedWaste(this.#past);
    this.#ratings.forget();
    this.#countSlots();
    this.#version += 1;
  }

  weigh({ request, roots, count }: HostBatch, weights: Float64Array, offset: number): boolean {
    const { view } = request;
    const columns = gpuColumns(view);
    if (columns.length === 0) return false;
    if (this.#ratings.count > STATES_MAX) this.#forgetStates();
    const shape = this.#intern(shapeAsked(request.request.groups, view));
    for (let index = 0; index < count; index += 1) {
      const host = { view, columns, root: roots[index]! };
      const state = this.#ratings.stateOf(cpuOf(host, "free"), "", gpusOf(host, "free"));
      const rating = this.#ratings.best(shape, state);
      // No GPU of the tree has the room: the combination will show it.
      weights[offset + index] = Number.isFinite(rating) ? rating : 0;
    }
    return true;
  }

  /** Counts the slots of all hosts with GPUs, and prices them. */
  #countSlots(): void {
    if (this.#ratings.count > STATES_MAX) this.#forgetStates();
    const states: number[] = [];
    const kinds = new Map<string, TaskShape>();
    let gpuFree = 0;
    for (const host of hostsWithGpus(this.#views())) {
      const state = this.#ratings.stateOf(cpuOf(host, "free"), "", gpusOf(host, "free"));
      for (let times = 0; times < host.counts; times += 1) states.push(state);
      gpuFree += host.counts * this.#ratings.stateAt(state).gpuFreeSum;
      const whole = wholeHost(host);
      if (kinds.size < KINDS_MAX) kinds.set(`${whole.cpuMilli},${whole.gpus}`, whole);
    }
    this.#slots.expect(this.#demand.gpuShapes(), [...kinds.values()], states);
    this.#slots.reprice(gpuFree, this.#demand.meanGpuMilli());
  }

  /** The numbers of states mean nothing afterwards; slots cost nothing until they are counted again. */
  #forgetStates(): void {
    this.#ratings.clear();
    this.#slots.expect([], [], []);
  }

  #intern({ cpuMilli, gpus, gpuMilli }: Omit<TaskShape, "index">): TaskShape {
    const key = `${cpuMilli},${gpus},${gpuMilli}`;
    const known = this.#shapes.get(key);
    if (known) return known;
    if (this.#shapes.size >= SHAPES_MAX) {
      this.#shapes.clear();
      this.#forgetStates();
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

/** A host, by the root of its tree in a view, and the columns of the view's GPUs. */
interface GpuHost {
  readonly view: LedgerView;
  readonly root: number;
  readonly columns: readonly Readonly<InventoryColumn>[];
}

/** What of a host is counted: what is free, or everything that it has. */
type Counted = "free" | "all";

/** The hosts with GPUs of all views; `counts` is how many hosts each stands for. */
function* hostsWithGpus(views: readonly LedgerView[]): Generator<GpuHost & { readonly counts: number }> {
  const hosts = views.reduce((sum, { slots }) => sum + slots.rootCount, 0);
  const counts = Math.max(1, Math.ceil(hosts / CENSUS_HOSTS_MAX));
  for (const view of views) {
    const columns = gpuColumns(view);
    if (columns.length === 0) continue;
    for (let index = 0; index < view.slots.rootCount; index += counts) {
      const host = { view, columns, root: view.slots.roots[index]!, counts };
      if (gpusOf(host, "all").length > 0) yield host;
    }
  }
}

/** A task that takes a whole empty host. */
function wholeHost(host: GpuHost): TaskShape {
  const gpus = gpusOf(host, "all").length;
  return { index: -1, cpuMilli: cpuOf(host, "all"), memoryMib: 0, gpus, gpuMilli: WHOLE_GPU, gpuModels: [] };
}

function cpuOf({ view, root }: Pick<GpuHost, "view" | "root">, counted: Counted): number {
  let cpu = 0;
  for (const name of view.resourceClasses()) {
    const factor = cpuMilliOf(name, 1);
    if (factor > 0) cpu += factor * amountOf(view.column(name)!, root, counted);
  }
  return stepped(cpu);
}

function amountOf(column: Readonly<InventoryColumn>, slot: number, counted: Counted): number {
  return Math.max(0, column.free[slot]!) + (counted === "all" ? column.used[slot]! : 0);
}

function stepped(milli: number): number {
  return Math.floor(milli / CPU_STEP_MILLI) * CPU_STEP_MILLI;
}

/** Thousandths of each GPU of a host. A provider with several of one class has as many whole ones as the amount makes. */
function gpusOf({ view, root, columns }: GpuHost, counted: Counted): number[] {
  const gpus: number[] = [];
  for (const column of columns) {
    const size = sizeOfGpu(column);
    for (const slot of [root, ...view.slots.descendants(root)]) {
      if (!column.has(slot)) continue;
      let left = amountOf(column, slot, counted);
      const count = Math.max(1, Math.round((column.free[slot]! + column.used[slot]!) / size));
      for (let gpu = 0; gpu < count; gpu += 1) {
        const part = Math.min(size, left);
        gpus.push(Math.round((part * WHOLE_GPU) / size));
        left -= part;
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
