import { describe, expect, it } from "vitest";
import { expectedFragment, fragmentationGradientDescent, typicalTasks } from "./fragmentation-gradient-descent.ts";
import { MachinePark } from "./machine-park.ts";
import { shapesOf, type TaskShape } from "./task-shape.ts";

function task(cpuMilli: number, gpus: number, gpuMilli: number): Omit<TaskShape, "index"> {
  return { cpuMilli, memoryMib: 1024, gpus, gpuMilli, gpuModels: [] };
}

const [whole, share, none] = shapesOf([task(8_000, 1, 1000), task(4_000, 1, 500), task(4_000, 0, 0)]) as [
  TaskShape,
  TaskShape,
  TaskShape,
];
const state = { cpuFree: 8_000, model: "T4", gpuFree: [1000, 300], gpuFreeSum: 1300, gpusWhole: 1 };

describe("fragmentation gradient descent", () => {
  it("takes the most frequent shapes as typical until they make up 95 % of the tasks", () => {
    const workload = [...Array(60).fill(whole), ...Array(36).fill(share), ...Array(4).fill(none)];
    expect(typicalTasks(workload)).toEqual([
      { shape: whole, share: 0.625 },
      { shape: share, share: 0.375 },
    ]);
  });

  it.each([
    ["what lies on GPUs with too little, when the task fits", [whole], 8_000, 300],
    ["all when CPU lacks", [whole], 7_999, 1300],
    ["all when the task wants no GPU", [none], 8_000, 1300],
    ["the mean over the typical tasks", [whole, share], 6_000, 0.5 * 1300 + 0.5 * 300],
  ])("counts %s as a fragment", (_, shapes, cpuFree, fragment) => {
    const typical = shapes.map((shape) => ({ shape, share: 1 / shapes.length }));
    expect(expectedFragment({ ...state, cpuFree }, typical)).toBe(fragment);
  });

  it("puts a share on the GPU that it fills up", () => {
    const park = new MachinePark([{ cpuMilli: 64_000, memoryMib: 65_536, gpus: 2, gpuModel: "T4" }]);
    const policy = fragmentationGradientDescent(park, [whole, share]);
    park.place(share, 0, 1);
    policy.placed?.(share, 0);
    // On GPU 1 nothing blocks whole tasks afterwards: 250 less waste. On GPU 0: 250 more.
    expect(policy.chooseGpu(share, 0)).toBe(1);
    expect(policy.score(share, 0)).toBe(Math.trunc(100 / (1 + Math.exp(-0.25))));
  });
});
