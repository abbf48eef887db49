import { WHOLE_GPU } from "./machine-park.ts";
import { sharesGpu, type TaskShape } from "./task-shape.ts";

/** All of a machine that a measure of waste may look at. Machines that are alike in it are one state. */
export interface MachineState {
  readonly cpuFree: number;
  readonly model: string;
  /** Free of each GPU, most first. */
  readonly gpuFree: readonly number[];
  readonly gpuFreeSum: number;
  readonly gpusWhole: number;
}

/** How much GPU (in thousandths of one) is of no use in a machine of this state. */
export type Waste = (state: MachineState) => number;

/** Turns the waste that a placement saves into its score; `before` and `after` are the numbers of the machine's states. */
export type Rate = (saved: number, before: number, after: number) => number;

/**
 * Rates what a placement does to a machine's state by how much less is wasted after it than before.
 *
 * Thousands of machines are in hundreds of states, so waste and rating of a state are remembered until `forget`.
 * Cost: a rating seen before is one lookup; a new one is one or two calls of the measure, for shares one for each GPU that differs.
 */
export class StateRatings {
  readonly #waste: Waste;
  readonly #rate: Rate;
  #states: MachineState[] = [];
  #wastes: number[] = [];
  readonly #known = new Map<string, number>();
  /** By shape, then by state: the rating, and the epoch in which it was made. One of an older epoch is forgotten. */
  #ratings: { readonly values: Float64Array; readonly epochs: Uint32Array }[] = [];
  #epoch = 1;
  /** By shape: which state follows on a state and what is free of the GPU that is taken. */
  #next: Map<number, number>[] = [];

  constructor(waste: Waste, rate: Rate = (saved) => saved) {
    this.#waste = waste;
    this.#rate = rate;
  }

  /** States there are. */
  get count(): number {
    return this.#states.length;
  }

  /** To be called after the measure of waste has changed. */
  forget(): void {
    this.forgetRatings();
    this.#wastes.fill(Number.NaN);
  }

  /** To be called after `rate` alone has changed. */
  forgetRatings(): void {
    this.#epoch += 1;
  }

  /** The state of a number. */
  stateAt(index: number): MachineState {
    return this.#states[index]!;
  }

  /** Forgets the states, too: their numbers, and those of shapes, mean nothing any more. */
  clear(): void {
    this.#states = [];
    this.#wastes = [];
    this.#known.clear();
    this.#ratings = [];
    this.#next = [];
  }

  /** The number of a state; sorts `gpus`. */
  stateOf(cpuFree: number, model: string, gpus: number[]): number {
    gpus.sort((one, other) => other - one);
    // Each a char code: short, and quick to make.
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

  /** Rates the task on GPUs that have `free` left. */
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
