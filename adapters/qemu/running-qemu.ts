import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { readdir, readFile, readlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { GUEST_FILES } from "./virtual-machine.ts";

/** What Linux adds to the name of a directory that was removed. */
const REMOVED = " (deleted)";

/** A process that still exists and was not replaced by another one with its id. */
export interface RunningQemu {
  readonly pid: number;
  /** The start time of /proc/PID/stat, in clock ticks since the machine's boot. With the id it names a process for good. */
  readonly startTime: string;
}

/**
 * The QEMU that runs in this guest's directory, or null. It is known by its working directory, since process ids are used again. `pid` is the process that it probably is, so
 * that not all processes are looked through. The guest's directory itself is not read, since its storage may hang. A QEMU under which somebody has removed the directory, or unmounted its storage, is
 * found, too.
 */
export function findRunningQemu(dir: string, pid: number | null = null): RunningQemu | null {
  if (pid !== null) {
    const found = lookAt(pid, dir);
    if (found !== null) return found;
  }
  for (const entry of readdirSync("/proc")) {
    const found = /^\d+$/.test(entry) ? lookAt(Number(entry), dir) : null;
    if (found !== null) return found;
  }
  return null;
}

/** Whether the process, or one of its threads, still exists. A process that has ended and that nobody waited for does not count. */
export function isRunning(qemu: RunningQemu): boolean {
  return startTimeOf(qemu.pid) === qemu.startTime;
}

function lookAt(pid: number, dir: string): RunningQemu | null {
  try {
    // Linux tells the directory in a fraction of the time that the start time takes, and most processes of the machine are in other directories.
    if (!isIn(pid, dir)) return null;
    const startTime = startTimeOf(pid);
    // The process may have been replaced since the first look, so what the start time belongs to is looked at after it.
    if (startTime === null || !isIn(pid, dir)) return null;
    const [command = ""] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return command.includes("qemu-system") ? { pid, startTime } : null;
  } catch (error) {
    return nullIfGone(error);
  }
}

/**
 * For a directory whose storage was unmounted lazily (`umount -l`), Linux names only the path within that storage, which is the end of the whole path. No other guest's directory ends so, since its name
 * has the id of its attempt.
 */
const isIn = (pid: number, dir: string): boolean => dir.endsWith(dirOf(readlinkSync(`/proc/${pid}/cwd`)));

/** The directory that a link in /proc names. Linux marks one that was removed. */
const dirOf = (link: string): string => (link.endsWith(REMOVED) ? link.slice(0, -REMOVED.length) : link);

/** A QEMU of this machine, whoever started it. */
export interface SeenQemu {
  readonly pid: number;
  /** Its working directory, also after that was removed. Null if this process may not know it. */
  readonly dir: string | null;
  readonly commandLine: string;
}

/**
 * All QEMUs of this machine, in one look at its processes, without those that /proc hides from this process's user (its option `hidepid`). Rejects if any other process cannot be
 * read: it may be a QEMU that runs.
 *
 * Cost: one read for each process of the machine, during which this process does not stand still.
 */
export async function seenQemus(): Promise<readonly SeenQemu[]> {
  const seen: SeenQemu[] = [];
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    // It is empty for a process that has ended.
    const commandLine = (await readFile(`/proc/${entry}/cmdline`, "latin1").catch(nullIfGone)) ?? "";
    const [program = ""] = commandLine.split("\0", 1);
    if (!basename(program).includes("qemu")) continue;
    const link = await readlink(`/proc/${entry}/cwd`).catch(nullIfGone);
    seen.push({ pid: Number(entry), dir: link === null ? null : dirOf(link), commandLine });
  }
  return seen;
}

/**
 * Null when there is no such process, or when it has ended and its parent has not collected its exit status yet. Until its last thread has ended, a process has its files open, and may write to
 * them, although Linux shows it as a zombie as soon as its first thread has ended.
 */
function startTimeOf(pid: number): string | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch (error) {
    return nullIfGone(error);
  }
  // The second field, the program's name in parentheses, may contain blanks and parentheses. The state is the third, the number of threads the 20th, the start time the 22nd.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state] = fields;
  const hasEnded = (state === "Z" || state === "X") && Number(fields[17]) <= 1;
  return hasEnded ? null : (fields[19] ?? null);
}

/**
 * Null for a process that has ended, or is another user's. Throws every other error: a process whose state cannot be read may still be running.
 */
export function nullIfGone(error: unknown): null {
  const { code = "" } = error as NodeJS.ErrnoException;
  if (["ENOENT", "ESRCH", "EACCES", "EPERM"].includes(code)) return null;
  throw error;
}

/** The process id that a guest's QEMU has written into the guest's directory. Null if there is none yet, or no longer. */
export async function readProcessId(dir: string): Promise<number | null> {
  const text = await readFile(join(dir, GUEST_FILES.processId), "utf8").catch(() => "");
  return /^\d{1,9}$/.test(text.trim()) ? Number(text) : null;
}
