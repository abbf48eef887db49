import { describe, expect, it } from "vitest";
import type { Machine, TraceTask } from "../trace.ts";
import { drawExperiment } from "./draw-experiment.ts";

const machines: Machine[] = Array.from({ length: 5 }, (_, index) => ({
  name: `m${index}`,
  cpuMilli: 64_000,
  memoryMib: 65_536,
  gpus: 4,
  gpuModel: "T4",
}));
const list: TraceTask[] = Array.from({ length: 12 }, (_, index) => ({
  name: `t${String(index).padStart(2, "0")}`,
  cpuMilli: 1_000,
  memoryMib: 512,
  gpus: index % 4 === 0 ? 0 : 1,
  gpuMilli: index % 4 === 0 ? 0 : 250 * (index % 4),
  gpuModels: [],
  createdAt: index,
  deletedAt: index,
}));
const asked = (tasks: readonly TraceTask[]): number => tasks.reduce((sum, task) => sum + task.gpus * task.gpuMilli, 0);
const names = (named: readonly { readonly name: string }[]): string[] => named.map(({ name }) => name);

describe("drawing an experiment", () => {
  it("draws the same experiment for the same seed, whatever the order of the files", () => {
    const one = drawExperiment(list, machines, { inflate: 1.3, seed: 42 });
    const again = drawExperiment(list.toReversed(), machines.toReversed(), { inflate: 1.3, seed: 42 });
    expect(names(again.tasks)).toEqual(names(one.tasks));
    expect(names(again.machines)).toEqual(names(one.machines));
    const other = drawExperiment(list, machines, { inflate: 1.3, seed: 43 });
    expect(names(other.tasks)).not.toEqual(names(one.tasks));
  });

  it("begins with the whole list and ends just before too much is requested", () => {
    const { tasks, machines: ordered } = drawExperiment(list, machines, { inflate: 1.3, seed: 42 });
    expect(names(tasks.slice(0, list.length)).toSorted()).toEqual(names(list));
    expect(asked(tasks)).toBeLessThanOrEqual(26_000);
    expect(asked(tasks)).toBeGreaterThan(25_000);
    expect(names(ordered).toSorted()).toEqual(names(machines));
  });

  it("leaves tasks out when the list requests too much", () => {
    const { tasks } = drawExperiment(list, machines, { inflate: 0.1, seed: 42 });
    expect(asked(tasks)).toBeLessThanOrEqual(2_000);
    expect(new Set(names(tasks)).size).toBe(tasks.length);
  });
});
