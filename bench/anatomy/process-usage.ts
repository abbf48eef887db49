import { readdirSync, readFileSync } from "node:fs";

/** The usage of a process since its start. */
export interface Usage {
  readonly cpuMs: number;
  /** How often its threads woke up after they had waited. */
  readonly wakeUps: number;
  /** How many calls of `write` it made, which for Node and NATS is nearly the number of messages that it sent. Postgres' sends are not in it. */
  readonly writes: number;
  readonly writtenBytes: number;
}

/** Linux counts CPU time in /proc in hundredths of a second. */
const TICK_MS = 10;
// Fields of /proc/PID/stat after the name of the command, from field 3 on (proc_pid_stat(5)).
const PPID = 1;
const UTIME = 11;
const STIME = 12;
const CUTIME = 13;
const CSTIME = 14;

/** The usage of a process, or null when it has ended. */
export function usageOf(pid: number): Usage | null {
  try {
    const stat = statOf(pid);
    const io = readFileSync(`/proc/${pid}/io`, "utf8");
    return {
      cpuMs: (stat(UTIME) + stat(STIME)) * TICK_MS,
      wakeUps: wakeUpsOf(pid),
      writes: fieldOf(io, "syscw"),
      writtenBytes: fieldOf(io, "wchar"),
    };
  } catch (error) {
    if (hasEnded(error)) return null;
    throw error;
  }
}

/** CPU milliseconds of the threads of a process that have this name, since they started. 0 when the process has ended. */
export function threadsCpuMs(pid: number, name: string): number {
  try {
    return readdirSync(`/proc/${pid}/task`).reduce(
      (sum, task) => sum + threadCpuMs(`/proc/${pid}/task/${task}`, name),
      0,
    );
  } catch (error) {
    if (hasEnded(error)) return 0;
    throw error;
  }
}

function threadCpuMs(dir: string, name: string): number {
  try {
    if (readFileSync(`${dir}/comm`, "utf8").trim() !== name) return 0;
    return schedulerMs(dir);
  } catch (error) {
    if (hasEnded(error)) return 0;
    throw error;
  }
}

/** CPU milliseconds of the children of this process that have ended and were waited for. */
export function endedChildrenMs(pid: number): number {
  const stat = statOf(pid);
  return (stat(CUTIME) + stat(CSTIME)) * TICK_MS;
}

/** CPU milliseconds of a process, its present children and those that have ended. */
export function familyCpuMs(pid: number): number {
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && parentOf(Number(name)) === pid);
  const living = [pid, ...children.map(Number)].map((one) => usageOf(one)?.cpuMs ?? 0);
  return living.reduce((sum, ms) => sum + ms, endedChildrenMs(pid));
}

/**
 * The same, with the living ones by the scheduler's own clock of nanoseconds, for pieces of work that are shorter than Linux' hundredths of a second. Only for
 * processes of one thread, such as those of Postgres.
 */
export function exactFamilyCpuMs(pid: number): number {
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && parentOf(Number(name)) === pid);
  return [String(pid), ...children].reduce((sum, one) => sum + processCpuMs(one), endedChildrenMs(pid));
}

function processCpuMs(pid: string): number {
  try {
    return schedulerMs(`/proc/${pid}`);
  } catch (error) {
    if (hasEnded(error)) return 0;
    throw error;
  }
}

function schedulerMs(dir: string): number {
  return Number(readFileSync(`${dir}/schedstat`, "utf8").split(" ", 1)[0]) / 1e6;
}

/** The parent of a process, or null when the process has ended. */
export function parentOf(pid: number): number | null {
  try {
    return statOf(pid)(PPID);
  } catch (error) {
    if (hasEnded(error)) return null;
    throw error;
  }
}

function statOf(pid: number): (field: number) => number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (field) => Number(fields[field]);
}

function wakeUpsOf(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.reduce((sum, task) => sum + wakeUpsOfThread(pid, task), 0);
}

function wakeUpsOfThread(pid: number, task: string): number {
  try {
    return fieldOf(readFileSync(`/proc/${pid}/task/${task}/status`, "utf8"), "voluntary_ctxt_switches");
  } catch (error) {
    if (hasEnded(error)) return 0;
    throw error;
  }
}

function fieldOf(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(text)?.[1] ?? 0);
}

/** Whether a file of /proc could not be read because its process or thread has ended. */
export function hasEnded(error: unknown): boolean {
  return ["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "");
}
