import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HOSTS_FILES, TASKS_FILES, traceFile } from "../../replay/read-trace.ts";
import type { ReplayResult } from "../../replay/result.ts";
import { familyUsage, type UsageByName, usedBetween } from "./family-usage.ts";

const LIMIT_MS = 300_000;
const TIMES = ["creation_time", "deletion_time", "scheduled_time"];
/** The words of a line of progress that count tasks which have ended. */
const ENDED = /\b(?:placed|refused|errors) (\d+)/g;

/** A replay, and what was measured of its last part: how many tasks ended in a second, and the CPU milliseconds of a boot and its delete by part. */
export interface MeasuredReplay {
  readonly result: ReplayResult;
  readonly endedPerSecond: number;
  readonly cpuMs: UsageByName;
}

/** What a process had done and used at a moment. */
interface Reading {
  readonly atMs: number;
  readonly ended: number;
  readonly usage: UsageByName;
}

/**
 * Writes a trace that repeats the tasks of another one. Each repetition begins when all tasks of the one before have been deleted. Throws a TraceError if `from` is no trace.
 */
export function repeatTrace(from: string, to: string, times: number): void {
  const [hosts, tasks] = [traceFile(from, HOSTS_FILES), traceFile(from, TASKS_FILES)];
  mkdirSync(to);
  copyFileSync(join(from, hosts), join(to, hosts));
  writeFileSync(join(to, tasks), repeatedTasks(readFileSync(join(from, tasks), "utf8"), times));
}

/** Repeats the lines of a file of tasks, each time with other names and later times. */
export function repeatedTasks(content: string, times: number): string {
  const [header = "", ...lines] = content.trimEnd().split(/\r?\n/);
  const columns = header.split(",");
  const rows = lines.map((line) => line.split(","));
  const last = Math.max(...rows.map((row) => Number(row[columns.indexOf("deletion_time")])));
  const repeated = Array.from({ length: times }, (_, time) =>
    rows.map((row) =>
      row
        .map((value, at) => {
          if (columns[at] === "name") return `${value}-${time}`;
          return TIMES.includes(columns[at]!) && value !== "" ? String(Number(value) + time * (last + 1)) : value;
        })
        .join(","),
    ),
  );
  return `${[header, ...repeated.flat()].join("\n")}\n`;
}

/**
 * Replays a trace with `berth`, and measures from the moment at which `fromShare` of its tasks have ended. Rejects with the output of the replay,
 * including its audit, when the replay failed.
 */
export async function measuredReplay(
  berth: string,
  trace: string,
  options: { readonly fromShare: number; readonly failShare: string; readonly resultFile: string },
): Promise<MeasuredReplay> {
  const { fromShare, failShare, resultFile } = options;
  const child = spawn(berth, ["replay", trace, "--fail", failShare, "--json", resultFile], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: LIMIT_MS,
  });
  let output = "";
  let progress = "";
  const readings: Reading[] = [];
  const read = readingsFrom(fromShare);
  child.stdout.on("data", (text) => {
    output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    progress += text;
    const lines = progress.split("\n");
    progress = lines.pop()!;
    for (const line of lines) {
      const ended = read(line);
      if (ended !== null) readings.push({ atMs: performance.now(), ended, usage: familyUsage(child.pid!) });
    }
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${berth} replay ended with ${code ?? "a signal"}:\n${output}`);
  const [first, last] = readings;
  if (first === undefined || last === undefined || last.ended === first.ended)
    throw new Error(`${berth} replay did not tell when it began or ended:\n${output}`);
  const ended = last.ended - first.ended;
  return {
    result: JSON.parse(readFileSync(resultFile, "utf8")) as ReplayResult,
    endedPerSecond: (ended * 1_000) / (last.atMs - first.atMs),
    cpuMs: usedBetween(first.usage, last.usage, ended),
  };
}

/**
 * Returns a function that gets the lines of a replay's output in their order, and returns the number of tasks that have ended at the two lines that matter: the first one
 * at which `fromShare` of all tasks have, and the first one at which all have. For other lines it returns null.
 */
export function readingsFrom(fromShare: number): (line: string) => number | null {
  let tasks = 0;
  let wanted = 0;
  return (line) => {
    const began = /^(\d+) tasks on /.exec(line);
    if (began !== null) tasks = Number(began[1]);
    const ended = [...line.matchAll(ENDED)].reduce((sum, [, count]) => sum + Number(count), 0);
    if (tasks === 0 || ended < wanted || (wanted === 0 && ended < fromShare * tasks)) return null;
    wanted = wanted === 0 ? tasks : Number.POSITIVE_INFINITY;
    return ended;
  };
}
