import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createConnection, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "./free-port.ts";

const startAttemptsMax = 5;
const readyMsMax = 20_000;
const stopMsMax = 10_000;
const pollMs = 20;
const logCharsMax = 4_000;
const LAST_LINES = 2;

/** What it takes to run a server as a child process on a port of 127.0.0.1. */
export interface ChildServerSpec {
  readonly command: string;
  /** The arguments for a port; also the place to write a configuration that has it. */
  args(port: number): readonly string[];
  /** Fixed when given; otherwise a free one. */
  readonly port?: number;
  /** Sent on every new connection, when the server does not speak first. */
  readonly greeting?: string;
  /** How the first answer of a server that serves begins. */
  readonly answer: string;
}

export interface ChildServer {
  readonly port: number;
  readonly pid: number;
  /** SIGTERM, and SIGKILL when it takes longer than 10 s. Resolves when the process is gone. Repeatable. */
  stop(): Promise<void>;
  /** SIGKILL: what a crash is like. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** Resolves with how, if it ends without having been told to. */
  readonly died: Promise<string>;
}

/**
 * Starts the server and resolves when it answers. Rejects when the command is missing, ends, or does not answer within 20 s; then
 * nothing is left running. It ends with this process, however that ends.
 */
export async function startChildServer(spec: ChildServerSpec): Promise<ChildServer> {
  for (let attempt = 1; ; attempt += 1) {
    const port = spec.port ?? (await freePort());
    const running = spawnWatched(spec.command, spec.args(port));
    const failure = await waitUntilItAnswers(running, spec, port);
    if (failure === null) return handleOf(running, port);
    await end(running, "SIGKILL");
    // Somebody else may have taken the port between our look and the server's bind.
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
 * The server takes the place of a shell that has left a watcher behind: the watcher reads from our pipe, whose end (our death,
 * SIGKILL included) makes it stop the server.
 */
const watched =
  'exec 3<&0; ( { read -r word; [ -n "$word" ] || kill -TERM $$; } <&3 >/dev/null 2>&1 & ); exec "$0" "$@" </dev/null 3<&-';

function spawnWatched(command: string, args: readonly string[]): Running {
  const child = spawn("/bin/sh", ["-c", watched, command, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    // Debian puts servers where only root looks for programs.
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin` },
  });
  let log = "";
  let ended: string | null = null;
  const keep = (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-logCharsMax);
  };
  // A process that forgot to stop its server may end; the watcher sees to the rest.
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
    // Its process id is free for others now: the watcher must not signal it.
    child.stdin?.end("gone\n");
  });
  return { child, exited: once(child, "close"), ended: () => ended, log: () => log };
}

/** Null when it answers; otherwise why not. */
async function waitUntilItAnswers(running: Running, spec: ChildServerSpec, port: number): Promise<string | null> {
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
