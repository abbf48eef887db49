import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { openSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../rigs/eventually.ts";

/** A Docker engine, either one that is already running or one of our own. */
export interface Engine {
  /** The environment for every command that uses the engine. */
  readonly env: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

/**
 * The engine replaces a shell that has left a watcher behind. The watcher reads from our pipe. When the pipe ends (our death, SIGKILL
 * included), the watcher stops the engine with all containers.
 */
const WATCHED =
  'exec 3<&0; ( { read -r word; [ -n "$word" ] || kill -TERM $$; } <&3 >/dev/null 2>&1 & ); exec "$0" "$@" </dev/null 3<&-';

/** Returns null and prints the reason when there is no engine and none can be started. */
export async function openEngine(dir: string): Promise<Engine | null> {
  if (answers(process.env)) return { env: process.env, stop: async () => {} };
  if (process.getuid?.() !== 0) return refuse("none runs, and only root can start one");
  const socket = `unix://${join(dir, "docker.sock")}`;
  const env = { ...process.env, DOCKER_HOST: socket };
  const logFile = join(dir, "dockerd.log");
  const log = openSync(logFile, "w");
  const own = ["--exec-root", join(dir, "exec"), "--pidfile", join(dir, "dockerd.pid"), "-H", socket];
  // The engine is not in the terminal's process group, because Ctrl-C would end it before the containers are brought down.
  const child = spawn("/bin/sh", ["-c", WATCHED, "dockerd", ...own], { stdio: ["pipe", log, log], detached: true });
  child.stdin?.on("error", () => undefined); // The watcher is already gone and need not be told.
  let ended: string | null = null;
  child.once("error", (error) => {
    ended = error.message;
  });
  child.once("exit", (code) => {
    // Other processes can get its process id now, so the watcher must not signal it.
    child.stdin?.end("gone\n");
    ended ??= `dockerd ended with ${code}`;
  });
  await eventually("an answer of dockerd", () => ended !== null || answers(env), { everyMs: 500, withinMs: 60_000 });
  if (ended !== null) return refuse(`${ended}; its log is ${logFile}`);
  return { env, stop: () => end(child) };
}

function refuse(reason: string): null {
  process.stderr.write(`no Docker engine can be had here: ${reason}\n`);
  return null;
}

function answers(env: NodeJS.ProcessEnv): boolean {
  return spawnSync("docker", ["info"], { env, stdio: "ignore", timeout: 20_000 }).status === 0;
}

function end(child: ChildProcess): Promise<void> {
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  return exited;
}
