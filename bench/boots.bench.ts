import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateTrace } from "../replay/generate-trace.ts";
import { HOSTS_FILES, TASKS_FILES } from "../replay/read-trace.ts";
import type { ReplayResult } from "../replay/result.ts";
import { type MeasuredReplay, measuredReplay, repeatTrace } from "./boots/measured-replay.ts";
import { measuredOf, ROUNDS, report } from "./measure.ts";

const HOSTS = 1_500;
const TASKS = 8_000;
const FAIL = "0.05";
const BERTH = join(import.meta.dirname, "../bin/berth");
/** How often a cloud that has run for a while has replayed the trace. V8 has compiled most of the code by then, and Postgres has planned its statements. */
const TIMES_BEFORE = 2;
/** The threads of a replay by what runs in them. */
const THREADS: ReadonlyMap<string, string> = new Map([
  ["main thread", "main thread: api, schedulers, views"],
  ["cells", "thread of the cells: conductors, agents"],
  ["client", "thread of the client"],
  ["node-V8Worker", "V8's compilers and garbage collectors"],
]);
/** Parts that use less are not printed. */
const SHOWN_MS_MIN = 0.005;

const FIGURES: readonly (readonly [name: string, unit: string, figure: (result: ReplayResult) => number])[] = [
  ["boots, each with its delete", "boots/s", (result) => result.boots_per_second],
  ["POST to ACTIVE, p50", "ms", (result) => result.post_to_active_ms.p50],
  ["POST to ACTIVE, p99", "ms", (result) => result.post_to_active_ms.p99],
  ["errors", "servers", (result) => result.errors],
];

interface Round {
  readonly cold: MeasuredReplay;
  readonly warm: MeasuredReplay;
}

/**
 * Boots and deletes through HTTP like `berth replay`, with three cells and all services in one process. Each round has two processes: one that
 * starts cold, as a user's does, and one that has replayed the trace twice before it is measured, like a cloud that has run for a while. Also
 * prints the CPU of a boot and its delete, by thread and database, which depends less on other work of the machine than their number a second
 * does. Uses the trace in BERTH_BENCH_TRACE, or an invented one. With `BERTH_BENCH_BASE`, the `bin/berth` of another tree, the same is measured
 * there, in turns with this tree.
 */
export async function run(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  try {
    const given = process.env.BERTH_BENCH_TRACE;
    if (given === undefined) writeTrace(dir);
    const repeated = join(dir, "repeated");
    repeatTrace(given ?? dir, repeated, TIMES_BEFORE + 1);
    const options = { failShare: FAIL, resultFile: join(dir, "result.json") };
    const warm = { ...options, fromShare: TIMES_BEFORE / (TIMES_BEFORE + 1) };
    const trees = process.env.BERTH_BENCH_BASE === undefined ? [BERTH] : [BERTH, process.env.BERTH_BENCH_BASE];
    const rounds: Round[][] = trees.map(() => []);
    for (let round = 0; round < ROUNDS; round += 1)
      for (const [at, berth] of trees.entries())
        rounds[at]!.push({
          cold: await measuredReplay(berth, given ?? dir, { ...options, fromShare: 0 }),
          warm: await measuredReplay(berth, repeated, warm),
        });
    const what = given === undefined ? `${TASKS} tasks on ${HOSTS} hosts` : given;
    process.stdout.write(`  ${what}, ${FAIL} of the first builds fail\n`);
    for (const [at, of] of rounds.entries()) printRounds(of, at === 0 ? "" : ", base");
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function printRounds(rounds: readonly Round[], suffix: string): void {
  const cold = rounds.map((round) => round.cold);
  for (const [name, unit, figure] of FIGURES)
    report(`${name}${suffix}`, measuredOf(cold.map(({ result }) => figure(result))), unit);
  printCpu(cold, suffix);
  process.stdout.write(`  the same after it was replayed ${TIMES_BEFORE} times in the same cloud${suffix}\n`);
  const warm = rounds.map((round) => round.warm);
  report(`${FIGURES[0]![0]}${suffix}`, measuredOf(warm.map(({ endedPerSecond }) => endedPerSecond)), "boots/s");
  printCpu(warm, suffix);
}

function printCpu(rounds: readonly MeasuredReplay[], suffix: string): void {
  const total = ({ cpuMs }: MeasuredReplay): number => [...cpuMs.values()].reduce((sum, ms) => sum + ms, 0);
  report(`CPU of a boot and its delete${suffix}`, measuredOf(rounds.map(total)), "ms");
  const parts = [...new Set(rounds.flatMap(({ cpuMs }) => [...cpuMs.keys()]))]
    .map((part) => ({ part, used: measuredOf(rounds.map(({ cpuMs }) => cpuMs.get(part) ?? 0)) }))
    .filter(({ used }) => used.median >= SHOWN_MS_MIN)
    .sort((one, other) => other.used.median - one.used.median);
  for (const { part, used } of parts) report(`… ${THREADS.get(part) ?? part}`, used, "ms");
}

function writeTrace(dir: string): void {
  const files = generateTrace({ seed: 1, hosts: HOSTS, tasks: TASKS });
  writeFileSync(join(dir, HOSTS_FILES[1]), files.hosts);
  writeFileSync(join(dir, TASKS_FILES[1]), files.tasks);
}
