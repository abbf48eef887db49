import { BIGGEST_MACHINE } from "./biggest-machine.ts";
import type { MachineState } from "./state-ratings.ts";
import { allowsModel, type GpuAndCpu, gpuMilliSum, type TaskShape } from "./task-shape.ts";

/** The expected rate of each shape that has never been seen, as a part of all tasks, after many tasks have come. */
const UNSEEN_RATE = 0.0003;
/** Before the first tasks, each shape is expected once in this many. */
const UNSEEN_TASKS_FIRST = 1000;
/** Slots are priced for the tasks that will take this part of the free GPU, while CPU is not scarcer than GPUs. */
const HORIZON = 0.15;
/** How strongly scarce CPU lengthens the horizon. */
const SCARCITY_EXPONENT = 1.5;
/** The worth of a task without GPUs, as a part of the GPU that comes with its CPU on a big machine. */
const CPU_WORTH = 0.5;

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
 * Tasks without GPUs have slots, too. They are worth half of the GPU that comes with their CPU on a big machine. Without them, a large task without
 * GPUs may at last find room only where a task of 8 GPUs would have fitted, and it takes that room, since nothing that fits is refused.
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
   * These are likelier while few tasks have arrived. `machines` are the states of all machines. All prices are 0 until `reprice`.
   */
  expect(
    seen: { readonly shapes: readonly ExpectedShape[]; readonly tasks: number },
    unseen: readonly TaskShape[],
    machines: Iterable<number>,
  ): void {
    const unseenRate = Math.max(UNSEEN_RATE, 1 / (UNSEEN_TASKS_FIRST + seen.tasks));
    const expected = [...seen.shapes, ...unseen.map((shape) => ({ shape, rate: unseenRate }))];
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

  /** Sets the prices. `free` is what all machines have free, `perTask` what the average task takes. */
  reprice(free: GpuAndCpu, perTask: GpuAndCpu): void {
    const tasks = tasksAhead(free, perTask);
    for (const [index, { shape, rate }] of this.#expected.entries()) {
      const wanted = Math.min(1, (rate * tasks) / Math.max(1, this.#slots[index]!));
      this.#prices[index] = worthOf(shape) * wanted;
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

/**
 * The number of coming tasks for which slots are kept. When CPU will be used up before the GPUs are, it is larger. Then all machines fill up
 * at nearly the same time, and shortly before, every slot counts. With GPUs to spare, keeping slots costs little.
 */
function tasksAhead(free: GpuAndCpu, perTask: GpuAndCpu): number {
  const byGpu = free.gpuMilli / Math.max(1, perTask.gpuMilli);
  const byCpu = free.cpuMilli / Math.max(1, perTask.cpuMilli);
  return HORIZON * byGpu * Math.max(1, byGpu / Math.max(1, byCpu)) ** SCARCITY_EXPONENT;
}

/** The GPU that a task of the shape takes, or half of what comes with its CPU on a big machine when it takes none, in thousandths. */
function worthOf(shape: TaskShape): number {
  if (shape.gpus > 0) return gpuMilliSum(shape);
  return (CPU_WORTH * shape.cpuMilli * BIGGEST_MACHINE.gpuMilli) / BIGGEST_MACHINE.cpuMilli;
}

/** How many tasks of a shape have room on a machine that takes nothing else. For tasks that take nothing it is 0. */
function slotsIn(state: MachineState, shape: TaskShape): number {
  if (!allowsModel(shape, state.model)) return 0;
  const { cpuMilli, gpus, gpuMilli } = shape;
  const byCpu = cpuMilli === 0 ? Number.POSITIVE_INFINITY : Math.floor(state.cpuFree / cpuMilli);
  if (byCpu === 0) return 0;
  if (gpus === 0) return cpuMilli === 0 ? 0 : byCpu;
  if (gpus > 1) return Math.min(byCpu, Math.floor(state.gpusWhole / gpus));
  let byGpu = 0;
  for (const free of state.gpuFree) byGpu += Math.floor(free / gpuMilli);
  return Math.min(byCpu, byGpu);
}
