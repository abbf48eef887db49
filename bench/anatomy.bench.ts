import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FoldedStacks, selfTimes, selfTimesByPlace } from "./anatomy/cpu-profile.ts";
import { flameGraph } from "./anatomy/flame-graph.ts";
import { measureLoneBoots } from "./anatomy/lone-boots.ts";
import { COMPILERS, MeasuredCloud, sumOf, type UsageByPart, usedPer } from "./anatomy/measured-cloud.ts";
import type { Usage } from "./anatomy/process-usage.ts";
import type { StatementCount } from "./anatomy/statement-counts.ts";
import { printTimeLine } from "./anatomy/time-line.ts";
import { measuredOf, ROUNDS, report } from "./measure.ts";

const SERVERS = Number(process.env.BERTH_BENCH_SERVERS ?? 1_500);
/** V8 compiles the last functions that are called often after some 12,000 boots: until then a boot takes about a quarter more CPU. */
const WARM_UP_ROUNDS = 8;
const FUNCTIONS_SHOWN = 20;
const PLACES_SHOWN = 25;
const STATEMENTS_SHOWN = 12;
/** The hosts on which the builds of such a lone boot fail before the next one builds it. */
const FAILING_HOSTS = 2;
const OUT = process.env.BERTH_BENCH_OUT ?? "/tmp/berth-anatomy";

/**
 * A boot and its delete, taken apart: CPU milliseconds, wake-ups and bytes of each process, the functions and the SQL statements that take
 * the most, how long a boot takes when nothing else is under way, also when its first hosts fail, and where that time goes. The stacks are
 * written to `BERTH_BENCH_OUT` as a flame graph. With `BERTH_BENCH_BASE`, the `bin/berth` of another tree, the same is measured there, in
 * turns with this tree, and the difference printed.
 */
export async function run(): Promise<void> {
  const base = process.env.BERTH_BENCH_BASE;
  const clouds = [await MeasuredCloud.start()];
  try {
    if (base !== undefined) clouds.push(await MeasuredCloud.start(base));
    const rounds = await measureInTurns(clouds);
    printParts(rounds[0]!);
    if (rounds[1] !== undefined) printDifference(rounds[0]!, rounds[1]);
    if (process.env.BERTH_BENCH_BRIEF === undefined) await printInside(clouds[0]!, rounds[0]!);
    for (const failing of [0, FAILING_HOSTS])
      for (const [index, cloud] of clouds.entries()) {
        const what = `one boot alone${failing === 0 ? "" : `, ${failing} failing hosts`}, POST to ACTIVE, p50`;
        report(`${what}${index === 0 ? "" : ", base"}`, await measureLoneBoots(cloud, failing), "ms");
      }
  } finally {
    await Promise.all(clouds.map((cloud) => cloud.close()));
  }
  if (process.env.BERTH_BENCH_BRIEF === undefined) await printTimeLine();
}

/** The usage of each round per server, by cloud. Other load on the machine changes with time, so the clouds take turns. */
async function measureInTurns(clouds: readonly MeasuredCloud[]): Promise<readonly (readonly UsageByPart[])[]> {
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1)
    for (const cloud of clouds) await cloud.bootAndDelete(SERVERS);
  const rounds: UsageByPart[][] = clouds.map(() => []);
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [index, cloud] of clouds.entries()) {
      const before = await cloud.usage();
      await cloud.bootAndDelete(SERVERS);
      rounds[index]!.push(usedPer(SERVERS, before, await cloud.usage()));
    }
  return rounds;
}

function printParts(rounds: readonly UsageByPart[]): void {
  const parts = [...rounds.at(-1)!.keys()];
  const median = (part: string, field: keyof Usage) => medianOf(rounds, part, field);
  process.stdout.write(`  ${"".padEnd(48)} CPU ms   wake-ups   writes  written bytes\n`);
  const lines = parts
    .filter((part) => median(part, "cpuMs") >= 0.001 || median(part, "wakeUps") >= 0.01)
    .sort((a, b) => median(b, "cpuMs") - median(a, "cpuMs"));
  for (const part of lines) {
    const [cpu, wakes, writes, bytes] = (["cpuMs", "wakeUps", "writes", "writtenBytes"] as const).map((field) =>
      median(part, field),
    );
    process.stdout.write(
      `  ${part.padEnd(48)} ${cpu!.toFixed(3).padStart(6)} ${wakes!.toFixed(2).padStart(10)} ` +
        `${writes!.toFixed(2).padStart(8)} ${bytes!.toFixed(0).padStart(14)}\n`,
    );
  }
  report("CPU of a boot and its delete, all processes", measuredOf(totals(rounds)), "ms");
  report("… of it, V8's compilers, until they have compiled all", measuredOf(rounds.map(compilersMs)), "ms");
}

function printDifference(here: readonly UsageByPart[], base: readonly UsageByPart[]): void {
  process.stdout.write(`  ${"CPU ms, base and here".padEnd(48)}   base     here\n`);
  const parts = [...new Set([...here.at(-1)!.keys(), ...base.at(-1)!.keys()])];
  for (const part of parts) {
    const [before, now] = [medianOf(base, part, "cpuMs"), medianOf(here, part, "cpuMs")];
    if (Math.max(before, now) < 0.005) continue;
    const percent = before === 0 ? "" : `${((100 * (now - before)) / before).toFixed(1)} %`;
    process.stdout.write(
      `  ${part.padEnd(48)} ${before.toFixed(3).padStart(6)}   ${now.toFixed(3).padStart(6)}   ${percent}\n`,
    );
  }
  const [before, now] = [measuredOf(totals(base)), measuredOf(totals(here))];
  report("CPU of a boot and its delete, base", before, "ms");
  report("CPU of a boot and its delete, here", now, "ms");
}

function totals(rounds: readonly UsageByPart[]): readonly number[] {
  return rounds.map((round) => [...round.values()].reduce<Usage | undefined>(sumOf, undefined)?.cpuMs ?? 0);
}

/** CPU milliseconds of V8's compilers in a round, in all processes. */
function compilersMs(round: UsageByPart): number {
  return [...round].reduce((sum, [part, { cpuMs }]) => sum + (part.endsWith(COMPILERS) ? cpuMs : 0), 0);
}

function medianOf(rounds: readonly UsageByPart[], part: string, field: keyof Usage): number {
  return measuredOf(rounds.map((round) => round.get(part)?.[field] ?? 0)).median;
}

async function printInside(cloud: MeasuredCloud, rounds: readonly UsageByPart[]): Promise<void> {
  const sampled = await cloud.profile(() => cloud.bootAndDelete(SERVERS));
  const stacks = scaled(sampled, (role) => SERVERS * medianOf(rounds, role, "cpuMs"));
  printTimes("by function, itself", [...byRole(stacks)], selfTimes, FUNCTIONS_SHOWN);
  printTimes("by package and folder", [["all", stacks]], selfTimesByPlace, PLACES_SHOWN);
  writeStacks(stacks);
  const counts = await cloud.countStatements(() => cloud.bootAndDelete(SERVERS));
  for (const [server, statements] of counts) printStatements(server, statements);
}

/**
 * Samples are taken by the wall clock, so on a busy machine they count the time without a CPU, too. The stacks of each role are therefore
 * scaled to the CPU milliseconds that its processes use without the profiler.
 */
function scaled(stacks: FoldedStacks, cpuMsOf: (role: string) => number): FoldedStacks {
  return new Map(
    [...byRole(stacks)].flatMap(([role, own]) => {
      const total = [...own.values()].reduce((sum, ms) => sum + ms, 0);
      return [...own].map(([stack, ms]) => [stack, (ms * cpuMsOf(role)) / total] as const);
    }),
  );
}

/** The stacks of each role, whose name is the outermost frame. */
function byRole(stacks: FoldedStacks): ReadonlyMap<string, FoldedStacks> {
  const roles = new Map<string, Map<string, number>>();
  for (const [stack, ms] of stacks) {
    const [role = ""] = stack.split(";", 1);
    const own = roles.get(role) ?? new Map<string, number>();
    roles.set(role, own.set(stack, ms));
  }
  return roles;
}

function printTimes(
  title: string,
  groups: readonly (readonly [string, FoldedStacks])[],
  timesOf: (stacks: FoldedStacks) => readonly (readonly [string, number])[],
  shown: number,
): void {
  for (const [group, stacks] of groups) {
    const total = [...stacks.values()].reduce((sum, ms) => sum + ms, 0);
    process.stdout.write(`  ${group}, ${title}: ${(total / SERVERS).toFixed(3)} ms\n`);
    for (const [name, ms] of timesOf(stacks).slice(0, shown))
      process.stdout.write(
        `    ${(ms / SERVERS).toFixed(4)} ms ${((100 * ms) / total).toFixed(1).padStart(5)} %  ${name}\n`,
      );
  }
}

function printStatements(server: string, statements: readonly StatementCount[]): void {
  const ms = statements.reduce((sum, statement) => sum + statement.ms, 0);
  const calls = statements.reduce((sum, statement) => sum + statement.calls, 0);
  process.stdout.write(
    `  ${server}: ${(ms / SERVERS).toFixed(3)} ms in ${(calls / SERVERS).toFixed(3)} statements for each server\n`,
  );
  for (const { text, calls: times, ms: took, rows, walBytes } of statements.slice(0, STATEMENTS_SHOWN))
    process.stdout.write(
      `    ${(took / SERVERS).toFixed(4)} ms ${(times / SERVERS).toFixed(3)} calls ${(rows / SERVERS).toFixed(2)} rows ` +
        `${(walBytes / SERVERS).toFixed(0)} B of WAL  ${text.slice(0, 100)}\n`,
    );
}

function writeStacks(stacks: FoldedStacks): void {
  mkdirSync(OUT, { recursive: true });
  const folded = [...stacks].map(([stack, ms]) => `${stack} ${Math.round(ms * 1_000)}`);
  writeFileSync(join(OUT, "stacks.folded"), `${folded.join("\n")}\n`);
  writeFileSync(join(OUT, "flame.svg"), flameGraph(`CPU of ${SERVERS} boots and deletes`, stacks, SERVERS));
  process.stdout.write(`  stacks in microseconds and a flame graph: ${OUT}/stacks.folded, ${OUT}/flame.svg\n`);
}
