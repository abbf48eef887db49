import { Worker } from "node:worker_threads";
import { expect, test, vi } from "vitest";
import { MUTATIONS } from "./mutations.ts";
import { PROFILES } from "./profiles.ts";
import { runWorlds } from "./run-worlds.ts";
import type { SimOptions, SimResult } from "./simulate.ts";

const TIMEOUT_MS = 240_000;

function calm(seed: number, more: Partial<SimOptions> = {}): SimOptions {
  const [profile] = PROFILES.filter(({ name }) => name === "calm");
  if (profile === undefined) throw new Error("there is no profile calm");
  const size = { cells: 1, apis: 1, schedulers: 1, conductors: 1, hosts: 3, operations: 10, busyMs: 5_000 };
  return { seed, profile, ...size, mutation: null, wholeHistory: false, ...more };
}

async function collect(worlds: readonly SimOptions[], jobs: number): Promise<SimResult[]> {
  const results: SimResult[] = [];
  for await (const result of runWorlds(worlds, jobs)) results.push(result);
  return results;
}

test("threads give the results of one thread, in the order of the worlds, with a mutation in some", {
  timeout: TIMEOUT_MS,
}, async () => {
  const mutation = MUTATIONS.find(({ name }) => name === "release-forgotten")!;
  // The first world is the longest, so the others end before it.
  const worlds = [calm(1, { busyMs: 60_000, operations: 60 }), ...[2, 3, 4].map((seed) => calm(seed, { mutation }))];
  const alone = await collect(worlds, 1);
  expect(alone.map(({ seed }) => seed)).toEqual([1, 2, 3, 4]);
  expect(alone.some(({ findings }) => findings.length > 0)).toBe(true);
  expect(await collect(worlds, 2)).toEqual(alone);
});

test("a caller that stops early gets the results so far, and the threads end", { timeout: TIMEOUT_MS }, async () => {
  const terminate = vi.spyOn(Worker.prototype, "terminate");
  const endless = function* () {
    for (let seed = 1; ; seed += 1) yield calm(seed);
  };
  const seeds: number[] = [];
  for await (const { seed } of runWorlds(endless(), 2)) {
    seeds.push(seed);
    if (seeds.length === 3) break;
  }
  expect(seeds).toEqual([1, 2, 3]);
  expect(terminate).toHaveBeenCalledTimes(2);
  terminate.mockRestore();
});

test("a world that cannot be simulated is an error for the caller", { timeout: TIMEOUT_MS }, async () => {
  const broken = { ...calm(1), profile: null as never };
  await expect(collect([broken, calm(2)], 2)).rejects.toThrow("Cannot read properties of null");
});
