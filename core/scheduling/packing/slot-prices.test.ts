import { describe, expect, it } from "vitest";
import { SlotPrices } from "./slot-prices.ts";
import type { MachineState } from "./state-ratings.ts";
import { shapesOf, type TaskShape } from "./task-shape.ts";

function task(cpuMilli: number, gpus: number, gpuMilli: number, gpuModels: string[] = []): Omit<TaskShape, "index"> {
  return { cpuMilli, memoryMib: 1024, gpus, gpuMilli, gpuModels };
}

function machine(cpuFree: number, gpuFree: readonly number[], model = "T4"): MachineState {
  const gpuFreeSum = gpuFree.reduce((sum, free) => sum + free, 0);
  return { cpuFree, model, gpuFree, gpuFreeSum, gpusWhole: gpuFree.filter((free) => free === 1000).length };
}

const [pair, half, picky, cpuOnly, nothing] = shapesOf([
  task(8_000, 2, 1000),
  task(1_000, 1, 500),
  task(1_000, 1, 1000, ["A100"]),
  task(4_000, 0, 0),
  task(0, 0, 0),
]) as [TaskShape, TaskShape, TaskShape, TaskShape, TaskShape];
/** The average task, and so much free CPU that GPUs are scarcer. */
const PER_TASK = { cpuMilli: 1_000, gpuMilli: 1000 };
const AMPLE = 10_000_000_000;
/** State 0 is a whole machine, state 1 lacks half a GPU, and state 2 lacks CPU for a pair of GPUs. */
const STATES = [machine(16_000, [1000, 1000]), machine(15_000, [1000, 500]), machine(4_000, [1000, 1000])];

function priced(shape: TaskShape, rate: number, machines: readonly number[]): SlotPrices {
  const prices = new SlotPrices((state) => STATES[state]!);
  prices.expect({ shapes: [{ shape, rate }], tasks: 1 }, [], machines);
  return prices;
}

describe("prices of slots", () => {
  it("are 0 before they are set", () => {
    expect(priced(pair, 1, [0, 0]).lost(0, 1)).toBe(0);
  });

  it("are the GPU that the task takes, multiplied by the part of the slots that the coming tasks will take", () => {
    const prices = priced(pair, 0.5, [0, 0, 0, 0]);
    // 0.15 of 40 GPUs are six: six tasks with one GPU on average, half of them pairs. They will take 3 of the 4 slots.
    prices.reprice({ cpuMilli: AMPLE, gpuMilli: 40_000 }, PER_TASK);
    expect(prices.lost(0, 1)).toBe(2000 * (3 / 4));
    expect(prices.lost(0, 2)).toBe(2000 * (3 / 4));
    expect(prices.lost(1, 1)).toBe(0);
  });

  it("are never more than the GPU that the task takes", () => {
    const prices = priced(pair, 1, [0]);
    prices.reprice({ cpuMilli: AMPLE, gpuMilli: 1_000_000 }, PER_TASK);
    expect(prices.lost(0, 1)).toBe(2000);
  });

  it("rise when machines lose slots", () => {
    const prices = priced(pair, 0.5, [0, 0, 0, 0]);
    prices.changed(0, 1);
    prices.changed(0, 2);
    prices.reprice({ cpuMilli: AMPLE, gpuMilli: 40_000 }, PER_TASK);
    expect(prices.lost(0, 1)).toBe(2000 * Math.min(1, 3 / 2));
  });

  it("count as many slots on a machine as it has room for", () => {
    const prices = priced(half, 1, [0, 1, 2]);
    // 4, 3 and 4 slots.
    prices.reprice({ cpuMilli: AMPLE, gpuMilli: 11_000 }, PER_TASK);
    expect(prices.lost(0, 1)).toBeCloseTo(500 * (1.65 / 11));
    expect(prices.lost(0, 2)).toBe(0);
  });

  it("count no slot on a GPU whose model the task may not use", () => {
    const prices = priced(picky, 1, [0]);
    prices.reprice({ cpuMilli: AMPLE, gpuMilli: 1_000_000 }, PER_TASK);
    expect(prices.lost(0, 1)).toBe(0);
  });

  it("of a task without GPUs are half of the GPU that comes with its CPU on a big machine", () => {
    const prices = priced(cpuOnly, 0.5, [0, 0]);
    // Three of the six coming tasks, for 8 slots. 4 of 128 cores come with a quarter of one of 8 GPUs, half of which counts.
    prices.reprice({ cpuMilli: AMPLE, gpuMilli: 40_000 }, PER_TASK);
    expect(prices.lost(0, 2)).toBe(3 * 125 * (3 / 8));
    expect(prices.lost(0, 1)).toBe(125 * (3 / 8));
  });

  it("rise when CPU will be used up before the GPUs are", () => {
    const prices = priced(pair, 0.05, [0, 0, 0, 0]);
    const expected = (tasks: number): number => 2000 * ((0.05 * tasks) / 4);
    prices.reprice({ cpuMilli: 40_000, gpuMilli: 40_000 }, PER_TASK);
    expect(prices.lost(0, 2)).toBeCloseTo(expected(6));
    prices.reprice({ cpuMilli: 10_000, gpuMilli: 40_000 }, PER_TASK);
    expect(prices.lost(0, 2)).toBeCloseTo(expected(6 * 4 ** 1.5));
    prices.reprice({ cpuMilli: 0, gpuMilli: 40_000 }, PER_TASK);
    expect(prices.lost(0, 2)).toBe(2000);
  });

  it("are 0 for tasks that take nothing", () => {
    const prices = priced(nothing, 1, [0]);
    prices.reprice({ cpuMilli: AMPLE, gpuMilli: 1_000_000 }, PER_TASK);
    expect(prices.lost(0, 2)).toBe(0);
  });

  it("exist for shapes that have never been seen", () => {
    const prices = new SlotPrices((state) => STATES[state]!);
    prices.expect({ shapes: [], tasks: 1 }, [pair], [0]);
    prices.reprice({ cpuMilli: AMPLE, gpuMilli: 10_000_000 }, PER_TASK);
    expect(prices.lost(0, 1)).toBeGreaterThan(0);
  });

  it("expect a shape that has never arrived less and less, as other tasks arrive", () => {
    const lostAfter = (tasks: number): number => {
      const prices = new SlotPrices((state) => STATES[state]!);
      prices.expect({ shapes: [], tasks }, [pair], [0]);
      prices.reprice({ cpuMilli: AMPLE, gpuMilli: 1_000_000 }, PER_TASK);
      return prices.lost(0, 1);
    };
    expect(lostAfter(0)).toBeCloseTo(2000 * (150 / 1000));
    expect(lostAfter(1000)).toBeCloseTo(2000 * (150 / 2000));
    expect(lostAfter(100_000)).toBeCloseTo(2000 * 150 * 0.0003);
  });
});
