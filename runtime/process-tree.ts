import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** The process and all of its descendants that run at this moment, parents first. Cost: a look at every process. */
export function processTree(pid: number): readonly number[] {
  const children = Map.groupBy(parents(), ([, parent]) => parent);
  const found = [pid];
  for (const one of found) for (const [child] of children.get(one) ?? []) found.push(child);
  return found;
}

/**
 * Sends the signal to the process and all of its descendants. The topmost process gets SIGSTOP first, so that it starts no others
 * meanwhile. Processes that are already gone are skipped.
 */
export function signalTree(pid: number, signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
  if (signal !== "SIGCONT") send(pid, "SIGSTOP");
  for (const one of processTree(pid)) send(one, signal);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Pairs of process and parent. */
function parents(): readonly (readonly [pid: number, parent: number])[] {
  if (process.platform !== "linux") {
    const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
    return stdout.split("\n").map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
  }
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        // The command is in parentheses and may contain parentheses itself. The state and the parent follow it.
        const stat = readFileSync(`/proc/${name}/stat`, "latin1");
        return [[Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])] as const];
      } catch {
        return []; // the process ended meanwhile
      }
    });
}
