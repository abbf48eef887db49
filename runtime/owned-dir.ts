import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";

const OWNER_FILE = ".berth-owner";

/**
 * Makes a temporary directory `berth-<kind>-…` in `parent` that this process has to remove. It also removes directories of the same kind
 * that were left behind there by killed processes, each after `release` has ended what uses it; if that throws, it stays. Cost: one listing of `parent`, which is the directory for temporary files by default.
 */
export function makeOwnedDir(
  kind: string,
  parent = tmpdir(),
  release: (path: string) => void = () => undefined,
): string {
  const prefix = `berth-${kind}-`;
  for (const name of readdirSync(parent)) if (name.startsWith(prefix)) removeIfOrphan(join(parent, name), release);
  const path = mkdtempSync(join(parent, prefix));
  try {
    writeFileSync(join(path, OWNER_FILE), ownerOf(process.pid));
  } catch {
    // Without /proc, directories of killed processes are not removed.
  }
  return path;
}

/** Removes nothing when the owner is unknown, or when another process removed the directory meanwhile. */
function removeIfOrphan(path: string, release: (path: string) => void): void {
  try {
    const { uid } = lstatSync(path);
    if (uid !== process.getuid?.() || !isGone(readFileSync(join(path, OWNER_FILE), "utf8"))) return;
    release(path);
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Another process has to remove it.
  }
}

/**
 * Identifies a process by its id, its start time, and the machine or container in which both are valid: containers may share a directory
 * but not their processes.
 */
function ownerOf(pid: number): string {
  return `${pid} ${startedAt(pid) ?? "unknown"} ${processSpace()}`;
}

function isGone(owner: string): boolean {
  const pid = Number(owner.split(" ", 1)[0]);
  return Number.isSafeInteger(pid) && pid > 0 && owner.endsWith(` ${processSpace()}`) && owner !== ownerOf(pid);
}

/**
 * When the process started, in ticks since the machine's start, or null when there is no such process. Throws where that cannot be
 * determined.
 */
function startedAt(pid: number): string | null {
  readFileSync("/proc/self/stat");
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command in parentheses may contain spaces.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}

function processSpace(): string {
  return `${hostname()} ${readlinkSync("/proc/self/ns/pid")}`;
}
