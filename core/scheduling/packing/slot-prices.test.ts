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

const [pair, half, picky] = shapesOf([task(8_000, 2, 1000), task(1_000, 1, 500), task(1_000, 1, 1000, ["A100"])]) as [
  TaskShape,
  TaskShape,
  TaskShape,
];
/** State 0 is a whole machine, state 1 lacks half a GPU, and state 2 lacks CPU for a pair of GPUs. */
const STATES = [machine(16_000, [1000, 1000]), machine(15_000, [1000, 500]), machine(4_000, [1000, 1000])];

function priced(shape: TaskShape, rate: number, machines: readonly number[]): SlotPrices {
  const prices = new SlotPrices((state) => STATES[state]!);
  prices.expect([{ shape, rate }], [], machines);
  return prices;
}

describe("prices of slots", () => {
  it("are 0 before they are set", () => {
    expect(priced(pair, 1, [0, 0]).lost(0, 1)).toBe(0);
  });

  it("are the GPU that the task takes, multiplied by the part of the slots that the coming tasks will take", () => {
    const prices = priced(pair, 0.5, [0, 0, 0, 0]);
    // 0.15 of 40 GPUs are six: six tasks with one GPU on average, half of them pairs. They will take 3 of the 4 slots.
    prices.reprice(40_000, 1000);
    expect(prices.lost(0, 1)).toBe(2000 * (3 / 4));
    expect(prices.lost(0, 2)).toBe(2000 * (3 / 4));
    expect(prices.lost(1, 1)).toBe(0);
  });

  it("are never more than the GPU that the task takes", () => {
    const prices = priced(pair, 1, [0]);
    prices.reprice(1_000_000, 1000);
    expect(prices.lost(0, 1)).toBe(2000);
  });

  it("rise when machines lose slots", () => {
    const prices = priced(pair, 0.5, [0, 0, 0, 0]);
    prices.changed(0, 1);
    prices.changed(0, 2);
    prices.reprice(40_000, 1000);
    expect(prices.lost(0, 1)).toBe(2000 * Math.min(1, 3 / 2));
  });

  it("count as many slots on a machine as it has room for", () => {
    const prices = priced(half, 1, [0, 1, 2]);
    // 4, 3 and 4 slots.
    prices.reprice(11_000, 1000);
    expect(prices.lost(0, 1)).toBeCloseTo(500 * (1.65 / 11));
    expect(prices.lost(0, 2)).toBe(0);
  });

  it("count no slot on a GPU whose model the task may not use", () => {
    const prices = priced(picky, 1, [0]);
    prices.reprice(1_000_000, 1000);
    expect(prices.lost(0, 1)).toBe(0);
  });

  it("exist for shapes that have never been seen", () => {
    const prices = new SlotPrices((state) => STATES[state]!);
    prices.expect([], [pair], [0]);
    prices.reprice(10_000_000, 1000);
    expect(prices.lost(0, 1)).toBeGreaterThan(0);
  });
});
