import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateTrace } from "../replay/generate-trace.ts";
import { HOSTS_FILES, TASKS_FILES } from "../replay/read-trace.ts";
import type { ReplayResult } from "../replay/result.ts";
import { familyUsage, type UsageByName, usedBetween } from "./boots/family-usage.ts";
import { measuredOf, ROUNDS, report } from "./measure.ts";

const HOSTS = 1_500;
const TASKS = 8_000;
const FAIL = "0.05";
const BERTH = join(import.meta.dirname, "../bin/berth");
const LIMIT_MS = 300_000;
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

/** The result of a replay, and the CPU milliseconds of a boot and its delete by part. */
interface Round {
  readonly result: ReplayResult;
  readonly cpuMs: UsageByName;
}

/**
 * Boots and deletes through HTTP like `berth replay`, with three cells and all services in one process. Each round is a separate process
 * that starts cold, as a user's does. Prints also the CPU of a boot and its delete, by thread and database, which depends less on other work
 * of the machine than their number a second does. Uses the trace in BERTH_BENCH_TRACE, or an invented one. With `BERTH_BENCH_BASE`, the
 * `bin/berth` of another tree, the same is measured there, in turns with this tree.
 */
export async function run(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  try {
    const given = process.env.BERTH_BENCH_TRACE;
    if (given === undefined) writeTrace(dir);
    const trees = process.env.BERTH_BENCH_BASE === undefined ? [BERTH] : [BERTH, process.env.BERTH_BENCH_BASE];
    const rounds: Round[][] = trees.map(() => []);
    for (let round = 0; round < ROUNDS; round += 1)
      for (const [at, berth] of trees.entries())
        rounds[at]!.push(await replay(berth, given ?? dir, join(dir, "result.json")));
    const what = given === undefined ? `${TASKS} tasks on ${HOSTS} hosts` : given;
    process.stdout.write(`  ${what}, ${FAIL} of the first builds fail\n`);
    for (const [at, of] of rounds.entries()) printRounds(of, at === 0 ? "" : ", base");
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function printRounds(rounds: readonly Round[], suffix: string): void {
  for (const [name, unit, figure] of FIGURES)
    report(`${name}${suffix}`, measuredOf(rounds.map(({ result }) => figure(result))), unit);
  const total = ({ cpuMs }: Round): number => [...cpuMs.values()].reduce((sum, ms) => sum + ms, 0);
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

/** Rejects with the output of the replay, including its audit, when the replay failed. */
async function replay(berth: string, trace: string, file: string): Promise<Round> {
  const child = spawn(berth, ["replay", trace, "--fail", FAIL, "--json", file], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: LIMIT_MS,
  });
  let output = "";
  let progress = "";
  let tasks = 0;
  let before: UsageByName = new Map();
  let after: UsageByName = new Map();
  child.stdout.on("data", (text) => {
    output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    progress += text;
    const lines = progress.split("\n");
    progress = lines.pop()!;
    for (const line of lines) {
      const began = /^(\d+) tasks on /.exec(line);
      if (began) {
        tasks = Number(began[1]);
        before = familyUsage(child.pid!);
      } else if (line.startsWith("100 %")) after = familyUsage(child.pid!);
    }
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${berth} replay ended with ${code ?? "a signal"}:\n${output}`);
  if (tasks === 0 || after.size === 0)
    throw new Error(`${berth} replay did not tell when it began or ended:\n${output}`);
  return { result: JSON.parse(readFileSync(file, "utf8")) as ReplayResult, cpuMs: usedBetween(before, after, tasks) };
}
