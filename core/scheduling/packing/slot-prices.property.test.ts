import { describe, expect, it } from "vitest";
import fc from "../../../test/rigs/property.ts";
import { SlotPrices } from "./slot-prices.ts";
import type { MachineState } from "./state-ratings.ts";
import type { TaskShape } from "./task-shape.ts";

const gpuMilli = fc.constantFrom(0, 190, 500, 1000);
const state = fc.record({ cpuMilli: fc.nat(128_000), gpus: fc.array(gpuMilli, { maxLength: 8 }) });
const shape = fc
  .record({ cpuMilli: fc.nat(128_000), gpus: fc.nat(8), part: fc.constantFrom(100, 500, 1000) })
  .map(({ cpuMilli, gpus, part }): TaskShape => {
    const milli = gpus === 0 ? 0 : gpus === 1 ? part : 1000;
    return { index: 0, cpuMilli, memoryMib: 0, gpus, gpuMilli: milli, gpuModels: [] };
  });
const amounts = fc.record({
  cpuMilli: fc.oneof(fc.constant(0), fc.nat(200_000_000)),
  gpuMilli: fc.oneof(fc.constant(0), fc.nat(8_000_000)),
});

function machine(cpuFree: number, gpus: readonly number[]): MachineState {
  const gpuFree = gpus.toSorted((one, other) => other - one);
  const gpuFreeSum = gpus.reduce((sum, free) => sum + free, 0);
  return { cpuFree, model: "T4", gpuFree, gpuFreeSum, gpusWhole: gpus.filter((free) => free === 1000).length };
}

describe("prices of slots, for any demand and any free amounts", () => {
  it("are finite, and a placement costs between nothing and the worth of all slots of the machine", () => {
    fc.assert(
      fc.property(
        state,
        fc.nat(128_000),
        fc.nat(8),
        fc.array(shape, { maxLength: 5 }),
        amounts,
        amounts,
        (...drawn) => {
          const [before, cpuTaken, gpusTaken, shapes, free, perTask] = drawn;
          const states = [
            machine(before.cpuMilli, before.gpus),
            machine(
              Math.max(0, before.cpuMilli - cpuTaken),
              before.gpus.map((one, at) => (at < gpusTaken ? 0 : one)),
            ),
            machine(0, []),
          ];
          const prices = new SlotPrices((number) => states[number]!);
          const seen = { shapes: shapes.map((one) => ({ shape: one, rate: 0.2 })), tasks: 10 };
          prices.expect(seen, shapes, [0]);
          prices.reprice(free, perTask);
          expect(prices.lost(0, 1)).toBeGreaterThanOrEqual(0);
          expect(prices.lost(0, 1)).toBeLessThanOrEqual(prices.lost(0, 2) + 1e-6);
          expect(Number.isFinite(prices.lost(0, 2))).toBe(true);
        },
      ),
    );
  });
});
