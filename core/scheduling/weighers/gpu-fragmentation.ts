import type { RequestGroup } from "../../candidates/request.ts";
import type { ResourceClass } from "../../ledger/ids.ts";
import type { InventoryColumn } from "../../ledger/inventory-column.ts";
import type { LedgerView } from "../../ledger/ledger-view.ts";
import { DEMAND_REMEMBERED, learnedWaste, REMEMBERED } from "../packing/fragmentation.ts";
import { LearningSchedule } from "../packing/learning-schedule.ts";
import { WHOLE_GPU } from "../packing/machine-park.ts";
import { RecentTasks } from "../packing/recent-tasks.ts";
import { SlotPrices } from "../packing/slot-prices.ts";
import { StateRatings } from "../packing/state-ratings.ts";
import type { TaskShape } from "../packing/task-shape.ts";
import { gpuColumns, isGpuClass } from "./gpu-best-fit.ts";
import type { HostBatch, RelativeWeigher } from "./weigher.ts";

/** Maximum numbers of states and shapes with ratings. Beyond them all ratings are dropped. */
const STATES_MAX = 50_000;
const SHAPES_MAX = 1_000;
/** A provider with at least this many units is one GPU that is shared in parts, and not a number of GPUs. */
const SHARED_FROM = 100;
/** CPU is rounded to whole cores, which keeps the number of states small. */
const CPU_STEP_MILLI = 1_000;

/** Fewer requests than this do not show which requests are usual. */
const LEARN_FROM = 20;
/** Maximum number of hosts that are examined to count slots. When there are more, every n-th host counts n times. */
const CENSUS_HOSTS_MAX = 20_000;
/** Slots on whole hosts are counted for at most this many kinds of hosts. */
const KINDS_MAX = 50;

/**
 * Prefers hosts where a server makes the least GPU useless for the usual requests and uses up the least of the room that large requests
 * need. The measures are those of the packing experiment (see docs/packing.md), learned from the requests that this scheduler has seen. It
 * does not apply when no host has GPUs.
 *
 * Cost: some 500 ns a host and GPU. About once in a thousand requests it learns: it then examines up to 20,000 hosts in some tens of
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

  /** `views` returns the views of all cells, whose hosts provide the slots. */
  constructor(views: () => readonly LedgerView[] = () => []) {
    this.#views = views;
    this.#ratings = new StateRatings(
      (state) => this.#waste(state),
      (saved, before, after) => saved - this.#slots.lost(before, after),
    );
    this.#slots = new SlotPrices((state) => this.#ratings.stateAt(state));
  }

  /** Rises when the weigher has learned. */
  get version(): number {
    return this.#version;
  }

  /** Records a request that is about to be placed, once, as one of the usual requests. `view` is that of any cell with GPUs. */
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
      // No GPU of the tree has enough room. The search for a combination will refuse the tree.
      weights[offset + index] = Number.isFinite(rating) ? rating : 0;
    }
    return true;
  }

  /**
   * Counts the slots of all hosts, and prices them. Hosts without GPUs count, too, because they have room for the requests without GPUs.
   */
  #countSlots(): void {
    if (this.#ratings.count > STATES_MAX) this.#forgetStates();
    const states: number[] = [];
    const kinds = new Map<string, TaskShape>();
    let cpuMilli = 0;
    let gpuMilli = 0;
    for (const host of hostsOf(this.#views())) {
      const state = this.#ratings.stateOf(cpuOf(host, "free"), "", gpusOf(host, "free"));
      for (let times = 0; times < host.counts; times += 1) states.push(state);
      const { cpuFree, gpuFreeSum } = this.#ratings.stateAt(state);
      cpuMilli += host.counts * cpuFree;
      gpuMilli += host.counts * gpuFreeSum;
      const whole = wholeHost(host);
      if (whole.gpus > 0 && kinds.size < KINDS_MAX) kinds.set(`${whole.cpuMilli},${whole.gpus}`, whole);
    }
    const seen = { shapes: this.#demand.shapes(), tasks: this.#demand.seen };
    this.#slots.expect(seen, [...kinds.values()], states);
    this.#slots.reprice({ cpuMilli, gpuMilli }, this.#demand.meanAmounts());
  }

  /** Invalidates the numbers of all states. Slots cost nothing until they are counted again. */
  #forgetStates(): void {
    this.#ratings.clear();
    this.#slots.expect({ shapes: [], tasks: 0 }, [], []);
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

/** The CPU and GPUs of a request, in the experiment's terms: thousandths of a GPU refer to what one GPU offers. */
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
  // Several parts of GPUs are treated as whole ones, since the measure has nothing in between.
  return { cpuMilli: stepped(cpuMilli), memoryMib: 0, gpus, gpuMilli: gpus > 1 ? WHOLE_GPU : gpuMilli, gpuModels: [] };
}

function cpuMilliOf(resourceClass: ResourceClass | string, amount: number): number {
  if (resourceClass === "CUSTOM_CPU_MILLI") return amount;
  return resourceClass === "VCPU" || resourceClass === "PCPU" ? amount * 1_000 : 0;
}

/** A host, given by the root of its tree in a view, and the view's GPU columns. */
interface CensusHost {
  readonly view: LedgerView;
  readonly root: number;
  readonly columns: readonly Readonly<InventoryColumn>[];
}

/** Which amounts of a host are counted: the free ones or all of them. */
type Counted = "free" | "all";

/** The hosts of all views. `counts` is the number of hosts that each represents. */
function* hostsOf(views: readonly LedgerView[]): Generator<CensusHost & { readonly counts: number }> {
  const hosts = views.reduce((sum, { slots }) => sum + slots.rootCount, 0);
  const counts = Math.max(1, Math.ceil(hosts / CENSUS_HOSTS_MAX));
  for (const view of views) {
    const columns = gpuColumns(view);
    for (let index = 0; index < view.slots.rootCount; index += counts)
      yield { view, columns, root: view.slots.roots[index]!, counts };
  }
}

/** A task that takes a whole empty host. */
function wholeHost(host: CensusHost): TaskShape {
  const gpus = gpusOf(host, "all").length;
  return { index: -1, cpuMilli: cpuOf(host, "all"), memoryMib: 0, gpus, gpuMilli: WHOLE_GPU, gpuModels: [] };
}

function cpuOf({ view, root }: Pick<CensusHost, "view" | "root">, counted: Counted): number {
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

/** The thousandths of each GPU of a host. A provider that counts several GPUs of a class contributes that many whole ones. */
function gpusOf({ view, root, columns }: CensusHost, counted: Counted): number[] {
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

/**
 * Units that make one GPU: 1 where GPUs are counted, otherwise what a provider of the class has. All GPUs of a class have the same size.
 */
function sizeOfGpu(column: Readonly<InventoryColumn>): number {
  const known = sizes.get(column);
  if (known !== undefined) return known;
  const slot = column.maxUnit.findIndex((maxUnit) => maxUnit > 0);
  if (slot < 0) return 1;
  const size = column.total[slot]! >= SHARED_FROM ? column.total[slot]! : 1;
  sizes.set(column, size);
  return size;
}
