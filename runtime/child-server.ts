import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createConnection, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "./free-port.ts";

const startAttemptsMax = 5;
const READY_MS_MAX = 20_000;
const stopMsMax = 10_000;
const pollMs = 20;
const logCharsMax = 4_000;
const LAST_LINES = 2;

/** How to run a server as a child process on a port of 127.0.0.1. */
export interface ChildServerSpec {
  readonly command: string;
  /** Returns the arguments for a port. It may also write a configuration file that contains the port. */
  args(port: number): readonly string[];
  /** The port to use; a free one is chosen when it is absent. */
  readonly port?: number;
  /** Bytes to send on every new connection, for servers that do not speak first. */
  readonly greeting?: string;
  /** How the first answer of a ready server begins. */
  readonly answer: string;
  /** How long the server may take until it answers; 20 s by default. */
  readonly readyMsMax?: number;
}

export interface ChildServer {
  readonly port: number;
  readonly pid: number;
  /** Sends SIGTERM, and SIGKILL when the server takes longer than 10 s. Resolves when the process is gone. Repeatable. */
  stop(): Promise<void>;
  /** Sends SIGKILL, as in a crash. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** Resolves with how the process ended when it was not told to. */
  readonly died: Promise<string>;
}

/**
 * Starts the server and resolves when it answers. Rejects when the command is missing, ends, or does not answer in time; then nothing
 * is left running. The server ends with this process, however this process ends.
 */
export async function startChildServer(spec: ChildServerSpec): Promise<ChildServer> {
  for (let attempt = 1; ; attempt += 1) {
    const port = spec.port ?? (await freePort());
    const running = spawnWatched(spec.command, spec.args(port));
    const failure = await waitUntilItAnswers(running, spec, port);
    if (failure === null) return handleOf(running, port);
    await end(running, "SIGKILL");
    // Another process may have taken the port between our check and the server's bind.
    const portTaken = /address already in use/i.test(running.log());
    if (spec.port === undefined && portTaken && attempt < startAttemptsMax) continue;
    throw new Error(`${spec.command} cannot be started: ${failure} ${running.log()}`.trim());
  }
}

interface Running {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  ended(): string | null;
  log(): string;
}

/**
 * The server replaces a shell that has started a watcher in the background. The watcher reads from a pipe of this process and stops the
 * server when the pipe ends, which also happens when this process is killed.
 */
const watched =
  'exec 3<&0; ( { read -r word; [ -n "$word" ] || kill -TERM $$; } <&3 >/dev/null 2>&1 & ); exec "$0" "$@" </dev/null 3<&-';

function spawnWatched(command: string, args: readonly string[]): Running {
  const child = spawn("/bin/sh", ["-c", watched, command, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    // Debian puts servers in directories that are only in root's PATH.
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin` },
  });
  let log = "";
  let ended: string | null = null;
  const keep = (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-logCharsMax);
  };
  // A process that forgot to stop its server may still exit, because the watcher stops the server then.
  child.unref();
  for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as Socket | null)?.unref();
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  child.stdin?.on("error", () => undefined); // the watcher is gone already: nothing left to tell it
  child.once("error", (error) => {
    ended = error.message;
  });
  child.once("exit", (code, signal) => {
    ended = signal === null ? `exit code ${code}` : `killed by ${signal}`;
    // The process id may be reused from now on, so the watcher must not signal it.
    child.stdin?.end("gone\n");
  });
  return { child, exited: once(child, "close"), ended: () => ended, log: () => log };
}

/** Resolves with null once the server answers, otherwise with the reason why it does not. */
async function waitUntilItAnswers(running: Running, spec: ChildServerSpec, port: number): Promise<string | null> {
  const { readyMsMax = READY_MS_MAX } = spec;
  const deadline = performance.now() + readyMsMax;
  while (performance.now() < deadline) {
    const ended = running.ended();
    if (ended !== null) return ended;
    if (await answers(spec, port)) return null;
    await delay(pollMs);
  }
  return `no answer on port ${port} within ${readyMsMax} ms.`;
}

function answers(spec: ChildServerSpec, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: "127.0.0.1", timeout: 1_000 });
    const done = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("connect", () => spec.greeting !== undefined && socket.write(spec.greeting));
    socket.once("data", (data) => done(data.toString().startsWith(spec.answer)));
    socket.once("error", () => done(false));
    socket.once("timeout", () => done(false));
    socket.once("close", () => done(false));
  });
}

function handleOf(running: Running, port: number): ChildServer {
  let isTold = false;
  const told = (signal: "SIGTERM" | "SIGKILL") => {
    isTold = true;
    return end(running, signal);
  };
  return {
    port,
    pid: running.child.pid as number,
    stop: () => told("SIGTERM"),
    kill: () => told("SIGKILL"),
    died: new Promise((resolve) => {
      running.child.once("exit", () => {
        if (!isTold)
          resolve(`${running.ended()} ${running.log().trim().split("\n").slice(-LAST_LINES).join(" ")}`.trim());
      });
    }),
  };
}

async function end(running: Running, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  running.child.ref();
  if (running.ended() === null) running.child.kill(signal);
  const force = setTimeout(() => running.child.kill("SIGKILL"), stopMsMax);
  await running.exited;
  clearTimeout(force);
}
