import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { generateTrace } from "../replay/generate-trace.ts";
import { HOSTS_FILES, TASKS_FILES } from "../replay/read-trace.ts";
import type { ReplayResult } from "../replay/result.ts";
import { measuredOf, ROUNDS, report } from "./measure.ts";

const HOSTS = 1_500;
const TASKS = 8_000;
const FAIL = "0.05";
const BERTH = join(import.meta.dirname, "../bin/berth");
const LIMIT_MS = 300_000;

const FIGURES: readonly (readonly [name: string, unit: string, figure: (result: ReplayResult) => number])[] = [
  ["boots, each with its delete", "boots/s", (result) => result.boots_per_second],
  ["POST to ACTIVE, p50", "ms", (result) => result.post_to_active_ms.p50],
  ["POST to ACTIVE, p99", "ms", (result) => result.post_to_active_ms.p99],
  ["errors", "servers", (result) => result.errors],
];

/**
 * Boots and deletes through HTTP like `berth replay`, with three cells and all services in one process. Each round is a separate process
 * that starts cold, as a user's does. Uses the trace in BERTH_BENCH_TRACE, or an invented one.
 */
export async function run(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "berth-bench-"));
  try {
    const given = process.env.BERTH_BENCH_TRACE;
    if (given === undefined) writeTrace(dir);
    const results: ReplayResult[] = [];
    for (let round = 0; round < ROUNDS; round += 1) results.push(await replay(given ?? dir, join(dir, "result.json")));
    const what = given === undefined ? `${TASKS} tasks on ${HOSTS} hosts` : given;
    process.stdout.write(`  ${what}, ${FAIL} of the first builds fail\n`);
    for (const [name, unit, figure] of FIGURES) report(name, measuredOf(results.map(figure)), unit);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function writeTrace(dir: string): void {
  const files = generateTrace({ seed: 1, hosts: HOSTS, tasks: TASKS });
  writeFileSync(join(dir, HOSTS_FILES[1]), files.hosts);
  writeFileSync(join(dir, TASKS_FILES[1]), files.tasks);
}

/** Rejects with the output of the replay, including its audit, when the replay failed. */
async function replay(trace: string, file: string): Promise<ReplayResult> {
  await promisify(execFile)(BERTH, ["replay", trace, "--fail", FAIL, "--json", file], {
    timeout: LIMIT_MS,
    maxBuffer: 2 ** 26,
  });
  return JSON.parse(readFileSync(file, "utf8")) as ReplayResult;
}
