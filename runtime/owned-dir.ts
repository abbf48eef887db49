import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";

const OWNER_FILE = ".berth-owner";

/**
 * Makes a temporary directory `berth-<kind>-…` that this process has to remove, and removes those of the same kind whose processes are
 * gone and could not: they were killed. Cost: a look at the temporary files' directory.
 */
export function makeOwnedDir(kind: string): string {
  const prefix = `berth-${kind}-`;
  for (const name of readdirSync(tmpdir())) if (name.startsWith(prefix)) removeIfOrphan(join(tmpdir(), name));
  const path = mkdtempSync(join(tmpdir(), prefix));
  try {
    writeFileSync(join(path, OWNER_FILE), ownerOf(process.pid));
  } catch {
    // No /proc here: what a killed process leaves stays.
  }
  return path;
}

/** Nothing where it is not known whose it is, or is no longer there: others look, too. */
function removeIfOrphan(path: string): void {
  try {
    const { uid } = lstatSync(path);
    if (uid !== process.getuid?.() || !isGone(readFileSync(join(path, OWNER_FILE), "utf8"))) return;
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Somebody else's to remove.
  }
}

/** By process id, begin, and where both are valid: containers may share a directory and no processes. */
function ownerOf(pid: number): string {
  return `${pid} ${startedAt(pid) ?? "unknown"} ${processSpace()}`;
}

function isGone(owner: string): boolean {
  const pid = Number(owner.split(" ", 1)[0]);
  return Number.isSafeInteger(pid) && pid > 0 && owner.endsWith(` ${processSpace()}`) && owner !== ownerOf(pid);
}

/** Ticks since the machine's start; null: there is no such process. Throws where that cannot be known. */
function startedAt(pid: number): string | null {
  readFileSync("/proc/self/stat");
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command in parentheses may have spaces in it.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}

function processSpace(): string {
  return `${hostname()} ${readlinkSync("/proc/self/ns/pid")}`;
}
