import { readdirSync, readFileSync } from "node:fs";
import { hasEnded, parentOf, usageOf } from "../anatomy/process-usage.ts";

/** CPU milliseconds of each part of a process and its descendants, since they started. */
export type UsageByName = ReadonlyMap<string, number>;

const NANOSECONDS_PER_MS = 1e6;

/**
 * What a process that starts Postgres servers has used, by part: its threads by their names, and the servers' processes by what they do.
 * Processes that have ended are left out.
 */
export function familyUsage(pid: number): UsageByName {
  const parts = new Map<string, number>();
  const add = (part: string, ms: number): void => void parts.set(part, (parts.get(part) ?? 0) + ms);
  for (const task of namesIn(`/proc/${pid}/task`)) {
    const dir = `/proc/${pid}/task/${task}`;
    const name = readIfThere(`${dir}/comm`)?.trim();
    if (name !== undefined) add(Number(task) === pid ? "main thread" : name, threadCpuMs(dir));
  }
  for (const descendant of descendantsOf(pid)) {
    const title = readIfThere(`/proc/${descendant}/cmdline`)?.replaceAll("\0", " ") ?? "";
    add(partOfTitle(title), usageOf(descendant)?.cpuMs ?? 0);
  }
  return parts;
}

/** What a process of Postgres does, by the title that it gives itself. A server that follows a cell's log has its own part. */
export function partOfTitle(title: string): string {
  if (!title.startsWith("postgres:")) return "other processes";
  if (title.startsWith("postgres: walsender")) return "Postgres: views of cells";
  if (title.includes(" berth_api ")) return "Postgres: API database";
  if (title.includes(" berth_cell_")) return "Postgres: cells";
  return "Postgres: background";
}

/** What was used between two readings, for each unit of work. A part that began in between counts from its start. */
export function usedBetween(before: UsageByName, after: UsageByName, units: number): UsageByName {
  return new Map([...after].map(([part, ms]) => [part, Math.max(0, ms - (before.get(part) ?? 0)) / units]));
}

function descendantsOf(pid: number): readonly number[] {
  const children = Map.groupBy(
    namesIn("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number),
    (each) => parentOf(each),
  );
  const found: number[] = [];
  let next = children.get(pid) ?? [];
  while (next.length > 0) {
    found.push(...next);
    next = next.flatMap((each) => children.get(each) ?? []);
  }
  return found;
}

function threadCpuMs(dir: string): number {
  return Number((readIfThere(`${dir}/schedstat`) ?? "0").split(" ", 1)[0]) / NANOSECONDS_PER_MS;
}

function namesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if (hasEnded(error)) return [];
    throw error;
  }
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (hasEnded(error)) return undefined;
    throw error;
  }
}
