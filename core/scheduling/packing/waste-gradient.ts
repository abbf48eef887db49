import type { MachinePark } from "./machine-park.ts";
import { type MachineState, type Rate, StateRatings, type Waste } from "./state-ratings.ts";
import type { TaskShape } from "./task-shape.ts";

/**
 * Rates placements in a park by how much less is wasted after them than before, and so descends along the gradient of a measure of waste.
 */
export class WasteGradient {
  readonly #park: MachinePark;
  readonly #ratings: StateRatings;
  /** By machine: the number of its state. */
  readonly #stateOf: Int32Array;

  /** `rate` turns the waste that a placement saves, with the states before and after it, into its score. */
  constructor(park: MachinePark, waste: Waste, rate?: Rate) {
    this.#park = park;
    this.#ratings = new StateRatings(waste, rate);
    this.#stateOf = new Int32Array(park.count);
    for (let machine = 0; machine < park.count; machine += 1) this.changed(machine);
  }

  /** Call this after a machine has changed. */
  changed(machine: number): void {
    const park = this.#park;
    const gpuFree = Array.from({ length: park.gpuCount[machine]! }, (_, gpu) => park.gpuFree(machine, gpu));
    this.#stateOf[machine] = this.#ratings.stateOf(park.cpuFree[machine]!, park.models[machine]!, gpuFree);
  }

  /** Call this after the measure has changed. */
  forget(): void {
    this.#ratings.forget();
  }

  /** Call this after only `rate` has changed. */
  forgetRatings(): void {
    this.#ratings.forgetRatings();
  }

  /** By machine: the number of its state. */
  states(): Readonly<Int32Array> {
    return this.#stateOf;
  }

  /** The state with this number. */
  stateAt(index: number): MachineState {
    return this.#ratings.stateAt(index);
  }

  /** The rating of the task's best placement on a machine where it fits. */
  score(task: TaskShape, machine: number): number {
    return this.#ratings.best(task, this.#stateOf[machine]!);
  }

  /** The GPU of the best placement of a share, and the first of equals. */
  chooseGpu(task: TaskShape, machine: number): number {
    const state = this.#stateOf[machine]!;
    let best = Number.NEGATIVE_INFINITY;
    let chosen = -1;
    for (let gpu = 0; gpu < this.#park.gpuCount[machine]!; gpu += 1) {
      const free = this.#park.gpuFree(machine, gpu);
      if (free < task.gpuMilli) continue;
      const rating = this.#ratings.rateOn(task, state, free);
      if (rating <= best) continue;
      best = rating;
      chosen = gpu;
    }
    return chosen;
  }
}
