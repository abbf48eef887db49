import { WHOLE_GPU } from "./machine-park.ts";
import { sharesGpu, type TaskShape } from "./task-shape.ts";

/** Everything about a machine that a measure of waste may use. Machines that are alike in it share one state. */
export interface MachineState {
  readonly cpuFree: number;
  readonly model: string;
  /** The free part of each GPU, in descending order. */
  readonly gpuFree: readonly number[];
  readonly gpuFreeSum: number;
  readonly gpusWhole: number;
}

/** How much GPU, in thousandths of one, is useless in a machine of this state. */
export type Waste = (state: MachineState) => number;

/** Turns the waste that a placement saves into its score; `before` and `after` are the numbers of the machine's states. */
export type Rate = (saved: number, before: number, after: number) => number;

/**
 * Rates a placement by how much less is wasted in the machine's state after it than before.
 *
 * Thousands of machines are in hundreds of states, so the waste and rating of a state are remembered until `forget`.
 * Cost: a known rating is one lookup. A new one takes one or two calls of the measure, and for shares one for each GPU that differs.
 */
export class StateRatings {
  readonly #waste: Waste;
  readonly #rate: Rate;
  #states: MachineState[] = [];
  #wastes: number[] = [];
  readonly #known = new Map<string, number>();
  /** By shape, then by state: the rating, and the epoch in which it was made. A rating of an older epoch is invalid. */
  #ratings: { readonly values: Float64Array; readonly epochs: Uint32Array }[] = [];
  #epoch = 1;
  /** By shape: the next state of a machine, for its present state and the free part of the GPU that the task takes. */
  #next: Map<number, number>[] = [];

  constructor(waste: Waste, rate: Rate = (saved) => saved) {
    this.#waste = waste;
    this.#rate = rate;
  }

  /** Number of known states. */
  get count(): number {
    return this.#states.length;
  }

  /** Call this after the measure of waste has changed. */
  forget(): void {
    this.forgetRatings();
    this.#wastes.fill(Number.NaN);
  }

  /** Call this after only `rate` has changed. */
  forgetRatings(): void {
    this.#epoch += 1;
  }

  /** The state with this number. */
  stateAt(index: number): MachineState {
    return this.#states[index]!;
  }

  /** Also forgets the states. Earlier numbers of states and shapes become invalid. */
  clear(): void {
    this.#states = [];
    this.#wastes = [];
    this.#known.clear();
    this.#ratings = [];
    this.#next = [];
  }

  /** The number of a state. It sorts `gpus` in place. */
  stateOf(cpuFree: number, model: string, gpus: number[]): number {
    gpus.sort((one, other) => other - one);
    // One character for each number makes the key short and quick to build.
    const key = String.fromCharCode(cpuFree >>> 16, cpuFree & 0xffff, ...gpus) + model;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const index = this.#states.length;
    this.#known.set(key, index);
    this.#states.push({
      cpuFree,
      model,
      gpuFree: gpus,
      gpuFreeSum: gpus.reduce((sum, one) => sum + one, 0),
      gpusWhole: gpus.filter((one) => one === WHOLE_GPU).length,
    });
    this.#wastes.push(Number.NaN);
    return index;
  }

  /** The rating of the task's best placement on a machine where it fits. */
  best(task: TaskShape, state: number): number {
    let ratings = this.#ratings[task.index];
    if (ratings === undefined || state >= ratings.values.length) {
      const length = Math.max(1024, 2 * state);
      const longer = { values: new Float64Array(length), epochs: new Uint32Array(length) };
      if (ratings) {
        longer.values.set(ratings.values);
        longer.epochs.set(ratings.epochs);
      }
      this.#ratings[task.index] = longer;
      ratings = longer;
    }
    if (ratings.epochs[state] !== this.#epoch) {
      ratings.values[state] = this.#bestOf(task, state);
      ratings.epochs[state] = this.#epoch;
    }
    return ratings.values[state]!;
  }

  /** Rates the task on GPUs of which `free` is left. */
  rateOn(task: TaskShape, state: number, free: number): number {
    const after = this.#stateAfter(task, state, free);
    return this.#rate(this.#wasteOf(state) - this.#wasteOf(after), state, after);
  }

  #bestOf(task: TaskShape, state: number): number {
    if (!sharesGpu(task)) return this.rateOn(task, state, WHOLE_GPU);
    const frees = new Set(this.#states[state]!.gpuFree.filter((free) => free >= task.gpuMilli));
    return Math.max(...[...frees].map((free) => this.rateOn(task, state, free)));
  }

  #stateAfter(task: TaskShape, state: number, free: number): number {
    this.#next[task.index] ??= new Map();
    const next = this.#next[task.index]!;
    const move = state * (WHOLE_GPU + 1) + free;
    const known = next.get(move);
    if (known !== undefined) return known;
    const { cpuFree, model, gpuFree } = this.#states[state]!;
    let left = task.gpus;
    const gpusAfter = gpuFree.map((one) => {
      if (one !== free || left === 0) return one;
      left -= 1;
      return one - task.gpuMilli;
    });
    const after = this.stateOf(cpuFree - task.cpuMilli, model, gpusAfter);
    next.set(move, after);
    return after;
  }

  #wasteOf(state: number): number {
    const known = this.#wastes[state]!;
    if (!Number.isNaN(known)) return known;
    const waste = this.#waste(this.#states[state]!);
    this.#wastes[state] = waste;
    return waste;
  }
}
