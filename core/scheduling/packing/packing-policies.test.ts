import { describe, expect, it } from "vitest";
import { MachinePark } from "./machine-park.ts";
import { PACKING_POLICIES, packingPolicy } from "./packing-policies.ts";
import { placeTask } from "./place-task.ts";
import { shapesOf, type TaskShape } from "./task-shape.ts";

const SMALL = { cpuMilli: 64_000, memoryMib: 262_144, gpus: 2, gpuModel: "P100" };
const BIG = { cpuMilli: 96_000, memoryMib: 393_216, gpus: 8, gpuModel: "G2" };

function task(cpuMilli: number, gpus: number, gpuMilli: number): Omit<TaskShape, "index"> {
  return { cpuMilli, memoryMib: 1024, gpus, gpuMilli, gpuModels: [] };
}

const [whole, share400, share500, cpuOnly] = shapesOf([
  task(8_000, 1, 1000),
  task(8_000, 1, 400),
  task(8_000, 1, 500),
  task(8_000, 0, 0),
]) as [TaskShape, TaskShape, TaskShape, TaskShape];

function setUp(name: (typeof PACKING_POLICIES)[number], workload: readonly TaskShape[] = [whole]) {
  const park = new MachinePark([SMALL, BIG]);
  return { park, policy: packingPolicy(name, { park, workload, seed: 1 }) };
}

describe("packing policies", () => {
  it("best fit prefers the smallest remainder, in whole percent", () => {
    const { policy } = setUp("best-fit");
    // With 56 of 128 cores and 1 of 8 GPUs left, the mean is 28.125 %. With 88 cores and 7 GPUs left, it is 78.125 %.
    expect([policy.score(whole, 0), policy.score(whole, 1)]).toEqual([71, 21]);
  });

  it("the dot product prefers the machine with the least free along the task's direction", () => {
    const { policy } = setUp("dot-product");
    // (64·8 / 128² + 2·1 / 8²) / 2 = 0.03125; (96·8 / 128² + 8·1 / 8²) / 2 = 0.0859…
    expect([policy.score(whole, 0), policy.score(whole, 1)]).toEqual([96, 91]);
  });

  it("clustering prefers a machine with only the task's kind, then mixed, empty, other", () => {
    const { park, policy } = setUp("gpu-clustering");
    expect([policy.score(whole, 0), policy.score(cpuOnly, 0)]).toEqual([18 + 25, 0]);
    expect(placeTask(park, policy, whole)).toEqual({ kind: "placed", machine: 0 });
    expect([policy.score(whole, 0), policy.score(share400, 0)]).toEqual([21 + 75, 21]);
    park.place(share400, 0, 1);
    policy.placed?.(share400, 0);
    expect(policy.score(share500, 0)).toBe(23 + 50);
  });

  it("GPU packing prefers shared GPUs, then machines in use, then the smaller empty one", () => {
    const { park, policy } = setUp("gpu-packing");
    expect([policy.score(whole, 0), policy.score(whole, 1)]).toEqual([31, 25]);
    park.place(share400, 0, 0);
    expect([policy.score(share500, 0), policy.score(whole, 0), policy.score(cpuOnly, 0)]).toEqual([94, 49, 0]);
    expect(policy.chooseGpu(share500, 0)).toBe(0);
  });

  it("random takes every machine and every GPU equally often", () => {
    const { policy } = setUp("random");
    let first = 0;
    const gpus = [0, 0];
    for (let draw = 0; draw < 2000; draw += 1) {
      if (policy.score(whole, 0) > policy.score(whole, 1)) first += 1;
      gpus[policy.chooseGpu(share400, 0)]! += 1;
    }
    for (const count of [first, ...gpus]) expect(Math.abs(count - 1000)).toBeLessThan(100);
  });

  it.each(PACKING_POLICIES)(
    "%s places nothing where it does not fit, and repeats its choices for the same seed",
    (name) => {
      const tasks = shapesOf(
        Array.from({ length: 60 }, (_, at) => task(1_000 * (1 + (at % 7)), 1, 100 + 50 * (at % 19))),
      );
      const run = (): unknown[] => {
        const { park, policy } = setUp(name, tasks);
        return tasks.map((one) => placeTask(park, policy, one));
      };
      const placings = run();
      expect(placings).toContainEqual({ kind: "no-room" });
      expect(run()).toEqual(placings);
    },
  );
});
