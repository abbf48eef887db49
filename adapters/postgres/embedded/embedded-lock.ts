import { readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "./embedded-cluster.ts";
import { EmbeddedError } from "./embedded-error.ts";

// How long a server may take to shut down after its owner has died.
const OWNERLESS_MS = 20_000;
const POLL_MS = 20;

/**
 * Removes a `postmaster.pid` whose process is gone or is a different program by now, since Postgres refuses to start when any process has
 * that id. A server whose owner has died is shutting down, so this waits for it. A server with a living owner is an error (`in-use`).
 */
export async function clearStalePidFile(dataDir: string, cluster: Cluster): Promise<void> {
  const deadline = performance.now() + OWNERLESS_MS;
  for (let found = readPidFile(cluster); found !== null; found = readPidFile(cluster)) {
    const late = performance.now() > deadline;
    // The file contains no process id yet, because it is being written at this moment.
    if (found.pid === null ? late : !servesCluster(found.pid, cluster)) {
      rmSync(join(cluster.dir, "postmaster.pid"), { force: true });
      return;
    }
    const owner = readNumber(join(dataDir, "owner.pid"));
    if (found.pid !== null && ((owner !== null && isAlive(owner)) || late)) {
      const by = owner === null ? "" : `, started by process ${owner}`;
      throw new EmbeddedError(
        "in-use",
        `${dataDir} is in use (Postgres process ${found.pid}${by}): stop that process first, or use another --data-dir`,
      );
    }
    await delay(POLL_MS);
  }
}

function servesCluster(pid: number, cluster: Cluster): boolean {
  if (!isAlive(pid)) return false;
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === cluster.dir;
  } catch {
    // Without /proc the check cannot be made, so the file is trusted. On Linux the process belongs to another user, so it is not ours.
    return process.platform !== "linux";
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Line 1 of the file is the postmaster's process id, and line 8 its state (source: Postgres, pidfile.h). */
export function readPidFile(cluster: Cluster): { readonly pid: number | null; readonly status: string } | null {
  const text = readIfThere(join(cluster.dir, "postmaster.pid"));
  if (text === null) return null;
  const lines = text.split("\n");
  return { pid: Number(lines[0]) || null, status: (lines[7] ?? "").trim() };
}

export function readNumber(file: string): number | null {
  const text = readIfThere(file);
  return text === null ? null : Number(text);
}

/** Reads in one step, because Postgres may remove its file at any moment. */
function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
