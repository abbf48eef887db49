import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { boolean, duration, integer, oneOf, text } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../runtime/settings.ts";
import { mixedWorld } from "../sim/mixed.ts";
import { MUTATIONS } from "../sim/mutations.ts";
import { printFailure, printHeld, printJson, printOne, printTotal } from "../sim/print-results.ts";
import { PROFILES } from "../sim/profiles.ts";
import { runWorlds } from "../sim/run-worlds.ts";
import { SeedProgress } from "../sim/seed-progress.ts";
import type { SimOptions } from "../sim/simulate.ts";
import { runCommand } from "./run-command.ts";

/** The name for the mix of all profiles. */
const MIXED = "mixed";

const JOBS_MAX = 256;
/** A thread takes seconds to start, so with fewer seeds than this for each thread, one more would not save time. */
const SEEDS_OF_JOB_MIN = 50;

const count = (min: number, max: number, about: string, initial: string) =>
  setting(integer({ min, max }), { about, default: initial });

const declaration = {
  command: "berth sim",
  about: "Runs clouds in simulated worlds with faults, one world for each seed, and audits them at every step.",
  settings: {
    seed: optional(integer({ min: 0, max: 2 ** 31 }), { about: "a single seed, whose whole history is kept" }),
    seeds: setting(text({ pattern: /^\d{1,10}\.\.\d{1,10}$/, allowed: "FIRST..LAST" }), {
      about: "the seeds to run, from the first to the last",
      default: "1..100",
    }),
    profile: setting(oneOf(MIXED, ...PROFILES.map(({ name }) => name)), {
      about: "the kind of faults; with mixed the seed selects the faults and the size",
      default: "swarm",
    }),
    soak: setting(boolean, {
      about: "run fresh seeds until the command is stopped, even after a failure",
      default: "false",
    }),
    cells: count(1, 20, "cells", "2"),
    apis: count(1, 20, "apis", "2"),
    schedulers: count(1, 50, "schedulers", "2"),
    conductors: count(1, 20, "conductors of each cell", "2"),
    hosts: count(1, 2_000, "hosts of all cells together", "12"),
    requests: count(1, 100_000, "number of servers that users create; a quarter of them is deleted", "60"),
    busy: setting(duration({ minMs: 5_000, maxMs: 86_400_000 }), {
      about: "how long users and faults are active, in simulated time",
      default: "20s",
    }),
    jobs: optional(integer({ min: 1, max: JOBS_MAX }), {
      about: "worlds that run at the same time; by default one for each CPU if there are many seeds",
    }),
    mutation: optional(oneOf(...(MUTATIONS.map(({ name }) => name) as [string, ...string[]])), {
      about: "a bug to insert",
    }),
    history: optional(text(), { about: "file for the history of --seed, JSON lines" }),
    json: setting(boolean, { about: "print one JSON object for each seed", default: "false" }),
  },
};

/** The exit code that shells use for a command that was interrupted. */
const INTERRUPTED = 130;

/** `berth sim`: exit code 0 when every seed held, 1 when one failed, 130 when it was stopped before the last one. */
export function runSimCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const one = settings.seed ?? null;
    const [first, last] = settings.soak ? freshSeeds() : one === null ? readSeeds(settings.seeds) : [one, one];
    const total = {
      seeds: 0,
      failed: 0,
      simulatedMs: 0,
      accepted: 0,
      stranded: 0,
      startedMs: performance.now(),
      startedCpu: process.cpuUsage(),
    };
    let isStopped = false;
    // A world is finished first, so that its result is printed. A second signal ends the process at once.
    process.once("SIGINT", () => (isStopped = true)).once("SIGTERM", () => (isStopped = true));
    const progress = settings.soak || one !== null ? null : new SeedProgress(process.stderr, last - first + 1);
    for await (const result of runWorlds(worldsOf(settings, first, last), jobsOf(settings, last - first + 1))) {
      total.seeds += 1;
      total.simulatedMs += result.simulatedMs;
      total.accepted += result.counts.accepted;
      total.stranded += result.counts.stranded;
      if (settings.json) printJson(result);
      else if (one !== null) printOne(result);
      if (settings.history !== null && one !== null) writeFileSync(settings.history, result.history.join(""));
      const options = worldOf(settings, result.seed);
      if (result.findings.length > 0) {
        total.failed += 1;
        await printFailure(options, result, argv);
        if (!settings.soak) return 1;
      } else if (settings.soak && !settings.json) printHeld(result, options);
      progress?.show(total);
      if (isStopped) break;
    }
    progress?.end();
    if (!settings.json) printTotal(total, settings.profile);
    if (total.failed > 0) return 1;
    return settings.soak || total.seeds === last - first + 1 ? 0 : INTERRUPTED;
  });
}

type SimSettings = ValuesOf<typeof declaration.settings>;

function* worldsOf(settings: SimSettings, first: number, last: number): Generator<SimOptions> {
  for (let seed = first; seed <= last; seed += 1) yield worldOf(settings, seed);
}

function jobsOf({ jobs }: SimSettings, seeds: number): number {
  return jobs ?? Math.max(1, Math.min(availableParallelism(), JOBS_MAX, Math.floor(seeds / SEEDS_OF_JOB_MIN)));
}

function worldOf(settings: SimSettings, seed: number): SimOptions {
  const chosen = {
    mutation: MUTATIONS.find(({ name }) => name === settings.mutation) ?? null,
    wholeHistory: settings.seed !== null && settings.seed !== undefined,
  };
  if (settings.profile === MIXED) return { ...mixedWorld(seed), ...chosen };
  const { cells, apis, schedulers, conductors, hosts, requests: operations, busy: busyMs } = settings;
  const profile = PROFILES.find(({ name }) => name === settings.profile)!;
  return { seed, profile, ...chosen, ...{ cells, apis, schedulers, conductors, hosts, operations, busyMs } };
}

/** A random range of seeds that is practically endless, so that new seeds are tried in each run. */
function freshSeeds(): readonly [number, number] {
  return [Math.floor(Math.random() * 2 ** 30), 2 ** 31];
}

function readSeeds(seeds: string): readonly [number, number] {
  const [first = 0, last = 0] = seeds.split("..").map(Number);
  if (first > last) throw new SettingsError(`--seeds ${seeds}: the first seed must not be greater than the last`);
  return [first, last];
}
