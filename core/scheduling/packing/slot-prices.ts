import type { MachineState } from "./state-ratings.ts";
import { allowsModel, gpuMilliSum, type TaskShape } from "./task-shape.ts";

/** The expected rate of each shape that has never been seen, as a part of all tasks. */
const UNSEEN_RATE = 0.0003;
/** Slots are priced for the tasks that will take this part of the free GPU. */
const HORIZON = 0.15;

/** An expected shape and its part of all tasks. */
export interface ExpectedShape {
  readonly shape: TaskShape;
  readonly rate: number;
}

/**
 * Prices the slots that a placement uses up. A slot of a shape is room for one task of the shape on a machine that takes no task of another
 * shape, and a machine has as many slots of each shape as it has room for. A slot is worth the GPU that its task takes, multiplied by the
 * part of all slots of the shape that the coming tasks will need. So a slot costs nothing while there are plenty, and as much as the task
 * itself when there are as many coming tasks as slots. This is the bid price of revenue management, without its linear program.
 *
 * Machines are given by their states (see `StateRatings`).
 * Cost: a lost slot of any shape is one pass over the shapes. The slots of a state are counted once and remembered.
 */
export class SlotPrices {
  readonly #stateAt: (state: number) => MachineState;
  #expected: readonly ExpectedShape[] = [];
  /** By shape: all slots of all machines. */
  #slots = new Float64Array(0);
  /** By shape: the price of one slot, in thousandths of a GPU. */
  #prices = new Float64Array(0);
  /** Numbers of slots, by state and then by shape. */
  #slotsOf: (Int32Array | undefined)[] = [];

  /** `stateAt` returns the state with a given number. */
  constructor(stateAt: (state: number) => MachineState) {
    this.#stateAt = stateAt;
  }

  /**
   * Replaces the shapes whose slots are counted: those that were seen, and those in `unseen`, which may come although none has so far.
   * `machines` are the states of all machines. All prices are 0 until `reprice`.
   */
  expect(seen: readonly ExpectedShape[], unseen: readonly TaskShape[], machines: Iterable<number>): void {
    const expected = [...seen, ...unseen.map((shape) => ({ shape, rate: UNSEEN_RATE }))];
    this.#expected = expected;
    this.#slotsOf = [];
    this.#slots = new Float64Array(expected.length);
    this.#prices = new Float64Array(expected.length);
    for (const state of machines) this.#count(state, 1);
  }

  /** Notes that a machine has changed from one state to another. */
  changed(before: number, after: number): void {
    this.#count(before, -1);
    this.#count(after, 1);
  }

  /** Sets the prices. `gpuFreeMilli` is the free GPU of all machines, `gpuMilliPerTask` the average amount of a task. */
  reprice(gpuFreeMilli: number, gpuMilliPerTask: number): void {
    const tasks = (HORIZON * gpuFreeMilli) / Math.max(1, gpuMilliPerTask);
    for (const [index, { shape, rate }] of this.#expected.entries()) {
      const wanted = Math.min(1, (rate * tasks) / Math.max(1, this.#slots[index]!));
      this.#prices[index] = gpuMilliSum(shape) * wanted;
    }
  }

  /** The value, in thousandths of a GPU, of the slots that a machine loses by changing from one state to another. */
  lost(before: number, after: number): number {
    const slotsBefore = this.#of(before);
    const slotsAfter = this.#of(after);
    let worth = 0;
    for (let index = 0; index < slotsBefore.length; index += 1)
      worth += (slotsBefore[index]! - slotsAfter[index]!) * this.#prices[index]!;
    return worth;
  }

  #count(state: number, machines: number): void {
    const slots = this.#of(state);
    for (let index = 0; index < slots.length; index += 1) this.#slots[index]! += machines * slots[index]!;
  }

  #of(state: number): Int32Array {
    const known = this.#slotsOf[state];
    if (known !== undefined) return known;
    // Holes in the array would make each look-up slow.
    while (this.#slotsOf.length <= state) this.#slotsOf.push(undefined);
    const machine = this.#stateAt(state);
    const slots = Int32Array.from(this.#expected, ({ shape }) => slotsIn(machine, shape));
    this.#slotsOf[state] = slots;
    return slots;
  }
}

/** How many tasks of a shape that takes GPU have room on a machine that takes nothing else. */
function slotsIn(state: MachineState, shape: TaskShape): number {
  if (!allowsModel(shape, state.model)) return 0;
  const { cpuMilli, gpus, gpuMilli } = shape;
  const byCpu = cpuMilli === 0 ? Number.POSITIVE_INFINITY : Math.floor(state.cpuFree / cpuMilli);
  if (byCpu === 0) return 0;
  if (gpus > 1) return Math.min(byCpu, Math.floor(state.gpusWhole / gpus));
  let byGpu = 0;
  for (const free of state.gpuFree) byGpu += Math.floor(free / gpuMilli);
  return Math.min(byCpu, byGpu);
}
