import { writeFileSync } from "node:fs";
import { boolean, duration, integer, oneOf, text } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting } from "../runtime/settings.ts";
import { runCommand } from "./run-command.ts";
import { MUTATIONS } from "./sim/mutations.ts";
import { PROFILES } from "./sim/profiles.ts";
import { shrink } from "./sim/shrink.ts";
import { type SimOptions, type SimResult, simulate } from "./sim/simulate.ts";

const count = (min: number, max: number, about: string, initial: string) =>
  setting(integer({ min, max }), { about, default: initial });

const declaration = {
  command: "berth sim",
  about: "Runs clouds in simulated worlds, one a seed, with faults, and audits them at every step.",
  settings: {
    seed: optional(integer({ min: 0, max: 2 ** 31 }), { about: "one seed; with it the whole history is kept" }),
    seeds: setting(text({ pattern: /^\d{1,10}\.\.\d{1,10}$/, allowed: "FIRST..LAST" }), {
      about: "seeds from … to",
      default: "1..100",
    }),
    profile: setting(oneOf(...(PROFILES.map(({ name }) => name) as [string, ...string[]])), {
      about: "which faults there are",
      default: "swarm",
    }),
    cells: count(1, 20, "cells", "2"),
    apis: count(1, 20, "apis", "2"),
    schedulers: count(1, 50, "schedulers", "2"),
    conductors: count(1, 20, "conductors of each cell", "2"),
    hosts: count(1, 2_000, "hosts of all cells together", "12"),
    requests: count(1, 100_000, "what users do: creates, and deletes of a quarter", "60"),
    busy: setting(duration({ minMs: 5_000, maxMs: 86_400_000 }), {
      about: "how long users and faults go on, in the world's time",
      default: "20s",
    }),
    mutation: optional(oneOf(...(MUTATIONS.map(({ name }) => name) as [string, ...string[]])), {
      about: "a bug to put in on purpose",
    }),
    history: optional(text(), { about: "file for the history of --seed, JSON lines" }),
    json: setting(boolean, { about: "print one JSON object a seed", default: "false" }),
  },
};

/** `berth sim`: exit code 0 when every seed held, 1 when one failed. */
export function run(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const one = settings.seed ?? null;
    const [first, last] = one === null ? readSeeds(settings.seeds) : [one, one];
    const base = {
      profile: PROFILES.find(({ name }) => name === settings.profile)!,
      mutation: MUTATIONS.find(({ name }) => name === settings.mutation) ?? null,
      operations: settings.requests,
      busyMs: settings.busy,
      wholeHistory: one !== null,
      ...{ cells: settings.cells, apis: settings.apis, schedulers: settings.schedulers },
      ...{ conductors: settings.conductors, hosts: settings.hosts },
    };
    const total = { seeds: 0, simulatedMs: 0, accepted: 0, startedMs: performance.now() };
    for (let seed = first; seed <= last; seed += 1) {
      const options = { ...base, seed };
      const result = await simulate(options);
      if (settings.json) printJson(result);
      else if (one !== null) printOne(result);
      if (settings.history !== null && one !== null) writeFileSync(settings.history, result.history.join(""));
      if (result.findings.length > 0) {
        await printFailure(options, result, argv);
        return 1;
      }
      total.seeds += 1;
      total.simulatedMs += result.simulatedMs;
      total.accepted += result.counts.accepted;
    }
    if (!settings.json) printTotal(total, settings.profile);
    return 0;
  });
}

function readSeeds(seeds: string): readonly [number, number] {
  const [first = 0, last = 0] = seeds.split("..").map(Number);
  if (first > last) throw new SettingsError(`--seeds ${seeds}: the first must not be above the last`);
  return [first, last];
}

function printJson({ seed, findings, simulatedMs, steps, counts, digest }: SimResult): void {
  process.stdout.write(`${JSON.stringify({ seed, findings, simulatedMs, steps, ...counts, digest })}\n`);
}

function printOne({ seed, simulatedMs, steps, counts, digest }: SimResult): void {
  const { accepted, active, error, deleted, changes } = counts;
  process.stdout.write(
    `seed ${seed}: ${seconds(simulatedMs)} in ${steps} steps; ${accepted} accepted: ${active} active, ${error} in error, ` +
      `${deleted} deleted\nchanges: ${JSON.stringify(changes)}\nhistory ${digest}\n`,
  );
}

function printTotal(
  total: {
    readonly seeds: number;
    readonly simulatedMs: number;
    readonly accepted: number;
    readonly startedMs: number;
  },
  profile: string,
): void {
  const tookMs = performance.now() - total.startedMs;
  process.stdout.write(
    `${total.seeds} seeds of profile ${profile}: all laws held. ${total.accepted} requests, ${seconds(total.simulatedMs)} ` +
      `simulated in ${seconds(tookMs)} (${Math.round(total.simulatedMs / tookMs)} times as fast as life).\n`,
  );
}

/** What is wrong, the shortest prefix that shows it, what happened around it, and how to see it again. */
async function printFailure(options: SimOptions, failed: SimResult, argv: readonly string[]): Promise<void> {
  const write = (line: string) => process.stderr.write(`${line}\n`);
  write(`seed ${options.seed} fails:`);
  for (const { law, what, atMs } of failed.findings) write(`  law ${law} at ${seconds(atMs)}: ${what}`);
  const { busyMs, result } = await shrink(options, failed);
  write(`the shortest prefix that fails: users and faults for ${seconds(busyMs)}. What happened last:`);
  for (const line of result.history.slice(-40)) write(`  ${line.trimEnd()}`);
  const others = argv.filter(
    (word, at) => !/^--(seeds?|history)\b/.test(word) && !/^--(seeds?|history)$/.test(argv[at - 1] ?? ""),
  );
  write(`to see it again: berth sim --seed ${options.seed} ${others.join(" ")} --history history.jsonl`.trimEnd());
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
