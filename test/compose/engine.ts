import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { openSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../rigs/eventually.ts";

/** A Docker engine: the one that runs, or one of our own. */
export interface Engine {
  /** For all that asks it. */
  readonly env: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

/**
 * The engine takes the place of a shell that has left a watcher behind: the watcher reads from our pipe, whose end (our death,
 * SIGKILL included) makes it stop the engine, with all containers.
 */
const WATCHED =
  'exec 3<&0; ( { read -r word; [ -n "$word" ] || kill -TERM $$; } <&3 >/dev/null 2>&1 & ); exec "$0" "$@" </dev/null 3<&-';

/** Null, with the reason printed, where there is no engine and none can be started. */
export async function openEngine(dir: string): Promise<Engine | null> {
  if (answers(process.env)) return { env: process.env, stop: async () => {} };
  if (process.getuid?.() !== 0) return refuse("none runs, and only root can start one");
  const socket = `unix://${join(dir, "docker.sock")}`;
  const env = { ...process.env, DOCKER_HOST: socket };
  const logFile = join(dir, "dockerd.log");
  const log = openSync(logFile, "w");
  const own = ["--exec-root", join(dir, "exec"), "--pidfile", join(dir, "dockerd.pid"), "-H", socket];
  // Not of the terminal's group: Ctrl-C would end it before the containers that are to be brought down.
  const child = spawn("/bin/sh", ["-c", WATCHED, "dockerd", ...own], { stdio: ["pipe", log, log], detached: true });
  child.stdin?.on("error", () => undefined); // the watcher is gone already: nothing left to tell it
  let ended: string | null = null;
  child.once("error", (error) => {
    ended = error.message;
  });
  child.once("exit", (code) => {
    // Its process id is free for others now: the watcher must not signal it.
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
