import { describe, expect, it } from "vitest";
import { MachinePark } from "./machine-park.ts";
import { shapesOf } from "./task-shape.ts";

const machine = { cpuMilli: 16_000, memoryMib: 1024, gpus: 2, gpuModel: "T4" };
const task = { cpuMilli: 1_000, memoryMib: 128, gpus: 0, gpuMilli: 0, gpuModels: [] };

describe("a park of machines", () => {
  it("gives equal tasks one shape", () => {
    const [first, second, third] = shapesOf([task, { ...task, cpuMilli: 2_000 }, { ...task }]);
    expect(third).toBe(first);
    expect(second).toMatchObject({ index: 1, cpuMilli: 2_000 });
  });

  it.each([
    ["too much CPU", { cpuMilli: 16_001 }, false],
    ["all CPU", { cpuMilli: 16_000 }, true],
    ["too much memory", { memoryMib: 1025 }, false],
    ["both GPUs", { gpus: 2, gpuMilli: 1000 }, true],
    ["three GPUs", { gpus: 3, gpuMilli: 1000 }, false],
    ["a GPU of its model", { gpus: 1, gpuMilli: 1000, gpuModels: ["P100", "T4"] }, true],
    ["a GPU of another model", { gpus: 1, gpuMilli: 1000, gpuModels: ["P100"] }, false],
  ])("says whether %s fits", (_, wanted, fits) => {
    const [shape] = shapesOf([{ ...task, ...wanted }]);
    expect(new MachinePark([machine]).fits(shape!, 0)).toBe(fits);
  });

  it("takes a share of the chosen GPU, and whole GPUs only where they are completely free", () => {
    const park = new MachinePark([machine]);
    const [share, whole] = shapesOf([
      { ...task, gpus: 1, gpuMilli: 300 },
      { ...task, gpus: 1, gpuMilli: 1000 },
    ]);
    park.place(share!, 0, 0);
    expect([park.gpuFree(0, 0), park.gpuFree(0, 1), park.gpusWhole[0], park.gpuFreeSum[0]]).toEqual([
      700, 1000, 1, 1700,
    ]);
    park.place(whole!, 0, -1);
    expect([park.gpuFree(0, 0), park.gpuFree(0, 1), park.gpusWhole[0], park.gpuFreeMax[0]]).toEqual([700, 0, 0, 700]);
    expect([park.cpuFree[0], park.memoryFree[0]]).toEqual([14_000, 768]);
    expect(park.fits(whole!, 0)).toBe(false);
    expect(() => park.place(whole!, 0, -1)).toThrow("does not fit");
  });
});
