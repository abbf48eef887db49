import { describe, expect, it } from "vitest";
import { fragmentation } from "./fragmentation.ts";
import { ImaginedStreams } from "./imagined-streams.ts";
import { MachinePark } from "./machine-park.ts";
import { placeTask } from "./place-task.ts";
import { RecentTasks } from "./recent-tasks.ts";
import { shapesOf, type TaskShape } from "./task-shape.ts";

function task(cpuMilli: number, gpus: number, gpuMilli: number): Omit<TaskShape, "index"> {
  return { cpuMilli, memoryMib: 1024, gpus, gpuMilli, gpuModels: [] };
}

const [whole, share, cpuOnly, eight] = shapesOf([
  task(8_000, 1, 1000),
  task(2_000, 1, 400),
  task(6_000, 0, 0),
  task(64_000, 8, 1000),
]) as [TaskShape, TaskShape, TaskShape, TaskShape];

describe("recent tasks", () => {
  it("are repeated in their order, in sections that begin at equal distances", () => {
    const past = new RecentTasks(4);
    for (const shape of [eight, whole, share, cpuOnly, whole]) past.add(shape);
    // The task of eight GPUs is forgotten: the past is whole, share, cpuOnly, whole.
    expect(past.streams(2, 3)).toEqual([
      [whole, share, cpuOnly],
      [cpuOnly, whole, whole],
    ]);
  });

  it("give each shape its share of all tasks", () => {
    const past = new RecentTasks(10);
    for (const shape of [whole, cpuOnly, share, share]) past.add(shape);
    expect(past.shapes()).toEqual([
      { shape: whole, rate: 1 / 4 },
      { shape: share, rate: 2 / 4 },
      { shape: cpuOnly, rate: 1 / 4 },
    ]);
    expect(past.meanAmounts()).toEqual({ cpuMilli: (8_000 + 6_000 + 2 * 2_000) / 4, gpuMilli: (1000 + 2 * 400) / 4 });
  });

  it("give each shape its share of the GPUs", () => {
    const past = new RecentTasks(10);
    for (const shape of [whole, cpuOnly, share, share, share, share, share]) past.add(shape);
    expect(past.gpuDemand()).toEqual([
      { shape: whole, share: 1 / 3 },
      { shape: share, share: 2 / 3 },
    ]);
  });
});

describe("imagined streams", () => {
  const state = { cpuFree: 12_000, model: "T4", gpuFree: [1000, 500], gpuFreeSum: 1500, gpusWhole: 1 };

  it.each([
    ["takes the tightest GPU for a share", [share, whole], 100],
    ["lets those pass that lack CPU", [cpuOnly, whole, share], 1100],
    ["lets those pass that lack GPUs", [whole, whole, share], 100],
    ["ends when nothing is left", [whole, share], 100],
  ])("%s", (_, stream, leftover) => {
    expect(new ImaginedStreams([stream]).expectedLeftover(state)).toBe(leftover);
  });

  it("are averaged", () => {
    expect(new ImaginedStreams([[whole], [share]]).expectedLeftover(state)).toBe((500 + 1100) / 2);
  });
});

describe("packing by fragmentation", () => {
  const many = { memoryMib: 262_144, gpuModel: "T4" };

  it("takes CPU where there is more of it than the GPUs will need", () => {
    const park = new MachinePark([
      { ...many, cpuMilli: 16_000, gpus: 2 },
      { ...many, cpuMilli: 104_000, gpus: 2 },
    ]);
    const policy = fragmentation(park);
    for (let seen = 0; seen < 30; seen += 1) policy.arrive?.(whole);
    expect(policy.score(cpuOnly, 0)).toBeLessThan(policy.score(cpuOnly, 1));
  });

  it("leaves large machines to large tasks", () => {
    const park = new MachinePark([
      { ...many, cpuMilli: 96_000, gpus: 8 },
      { ...many, cpuMilli: 104_000, gpus: 2 },
    ]);
    const policy = fragmentation(park);
    for (let seen = 0; seen < 60; seen += 1) policy.arrive?.(seen % 10 === 9 ? eight : whole);
    expect(policy.score(whole, 0)).toBeLessThan(policy.score(whole, 1));
  });

  it("keeps room for large tasks without GPUs where another machine has room for a small one", () => {
    const [large, small] = shapesOf([task(32_000, 0, 0), task(4_000, 0, 0)]) as [TaskShape, TaskShape];
    const park = new MachinePark([
      { ...many, cpuMilli: 32_000, gpus: 0 },
      { ...many, cpuMilli: 28_000, gpus: 0 },
      { ...many, cpuMilli: 96_000, gpus: 8 },
    ]);
    const policy = fragmentation(park);
    for (let seen = 0; seen < 60; seen += 1) policy.arrive?.([small, large, eight][seen % 3]!);
    expect(policy.score(small, 0)).toBeLessThan(policy.score(small, 1));
  });

  it("refuses nothing until a fifth of the CPU is left, although every third task takes 32 cores and no GPU", () => {
    const [large, small] = shapesOf([task(32_000, 0, 0), task(11_000, 1, 1000)]);
    const park = new MachinePark([
      ...Array.from({ length: 20 }, () => ({ ...many, memoryMib: 1_000_000, cpuMilli: 96_000, gpus: 8 })),
      ...Array.from({ length: 20 }, () => ({ ...many, memoryMib: 1_000_000, cpuMilli: 48_000, gpus: 2 })),
    ]);
    const policy = fragmentation(park);
    const cpuFree = (): number => park.cpuFree.reduce((sum, free) => sum + free, 0);
    for (let at = 0; cpuFree() > 576_000; at += 1) {
      const next = at % 40 === 39 ? eight : at % 3 === 2 ? large! : small!;
      expect(placeTask(park, policy, next).kind).toBe("placed");
    }
  });

  it("keeps whole machines free for large tasks even when few of them have arrived", () => {
    const park = new MachinePark(Array.from({ length: 20 }, () => ({ ...many, cpuMilli: 96_000, gpus: 8 })));
    const policy = fragmentation(park);
    const small = [whole, share, cpuOnly];
    policy.arrive?.(eight);
    // Places small tasks until they take half of the park.
    for (let at = 0; park.gpuFreeSum.reduce((sum, free) => sum + free, 0) > 80_000; at += 1)
      expect(placeTask(park, policy, small[at % 3]!).kind).toBe("placed");
    for (let large = 0; large < 8; large += 1) expect(placeTask(park, policy, eight)).toMatchObject({ kind: "placed" });
  });
});
