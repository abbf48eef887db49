import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { Readable } from "node:stream";

/** The `berth` of this working tree. */
export const OWN_BERTH = join(import.meta.dirname, "../../bin/berth");

/** The bundle of this working tree's `berth` that BERTH_BUNDLE names, as in tests that start hundreds of processes, otherwise `OWN_BERTH`. */
export function quickestBerth(): string {
  return process.env.BERTH_BUNDLE ?? OWN_BERTH;
}

const LOG_CHARS_MAX = 1_000_000;
const LINE_CHARS_MAX = 400;

/**
 * The command replaces a shell that has started a watcher in the background. The watcher reads from a pipe of this process. When the pipe
 * ends, which also happens when this process is killed, the watcher kills the command, even a paused one.
 */
const WATCHED =
  'exec 3<&0; ( { read -r word; [ -n "$word" ] || kill -KILL $$; } <&3 >/dev/null 2>&1 & ); exec "$0" "$@" </dev/null 3<&-';

export interface ServiceSpec {
  /** Name for people, for example `conductor cell-1/2`. */
  readonly name: string;
  /** The command line after `berth`. */
  readonly argv: readonly string[];
  /** Returns the process' whole environment besides PATH and the directory of compiled code. It is called for each start. */
  readonly env: () => Readonly<Record<string, string>>;
  /** Returns the path of the `berth` to start, and is called for each start; by default the one of this working tree, or its bundle. */
  readonly berth?: () => string;
}

interface Life {
  readonly child: ChildProcess;
  readonly exited: Promise<string>;
  ended: string | null;
}

/** One `berth` command in a process of its own, which can be killed, paused, stopped and started again. */
export class ServiceProcess {
  readonly name: string;
  readonly #spec: ServiceSpec;
  #life: Life | null = null;
  #log = "";
  #marked = 0;
  #replaced: Promise<unknown> = Promise.resolve();

  constructor(spec: ServiceSpec) {
    this.name = spec.name;
    this.#spec = spec;
  }

  get running(): boolean {
    return this.#life !== null && this.#life.ended === null;
  }

  get pid(): number {
    const pid = this.#life?.child.pid;
    if (pid === undefined || !this.running) throw new Error(`${this.name} is not running`);
    return pid;
  }

  /** Resolves when the process serves, with the text that it printed after `ready`. Rejects, with its log, when it ends before that. */
  async start(): Promise<string> {
    if (this.running) throw new Error(`${this.name} runs already`);
    const life = this.#spawn();
    const ready = new Promise<string>((resolve) => {
      let line = "";
      (life.child.stdout as Readable).on("data", (chunk: Buffer) => {
        line = (line + chunk.toString()).slice(-LOG_CHARS_MAX);
        const found = /^ready ?(.*)\n/m.exec(line);
        if (found) resolve(found[1] ?? "");
      });
    });
    const note = await Promise.race([ready, life.exited.then(() => null)]);
    if (note === null) throw new Error(`${this.name} did not start (${life.ended}): ${this.#log.slice(-4_000)}`);
    return note;
  }

  /** Runs a command that ends on its own. Rejects, with its log, unless the exit code is 0. */
  async run(): Promise<void> {
    const life = this.#spawn();
    const ended = await life.exited;
    if (ended !== "exit code 0") throw new Error(`${this.name}: ${ended}: ${this.#log.slice(-4_000)}`);
  }

  /** Sends SIGKILL. Resolves when the process is gone. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /**
   * Kills the process and starts its successor, in one step: a second call waits until the successor of the first one serves, and then replaces
   * that. Callers that know nothing of each other would otherwise kill what another one is just starting. `whileGone` is called between the two.
   */
  replace(whileGone: () => Promise<void> = async () => undefined): Promise<string> {
    const next = async () => {
      await this.kill();
      await whileGone();
      return this.start();
    };
    const replaced = this.#replaced.then(next, next);
    this.#replaced = replaced;
    return replaced;
  }

  /** Sends SIGTERM. Resolves with how the process ended: `exit code 0` when all is well. */
  stop(): Promise<string> {
    return this.#end("SIGTERM");
  }

  /** Sends SIGSTOP: the process is stopped, with all its connections open, until `resume`. */
  async pause(): Promise<void> {
    process.kill(this.pid, "SIGSTOP");
  }

  async resume(): Promise<void> {
    process.kill(this.pid, "SIGCONT");
  }

  /** Marks the place in the log from which `logSinceMark` reads. */
  mark(): void {
    this.#marked = this.#log.length;
  }

  /** The last lines of the log since the mark. */
  logSinceMark(linesMax: number): string {
    const lines = this.#log.slice(this.#marked).trim().split("\n").slice(-linesMax);
    return lines.map((line) => line.slice(0, LINE_CHARS_MAX)).join("\n");
  }

  #spawn(): Life {
    const { PATH = "", NODE_COMPILE_CACHE } = process.env;
    const env = { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }), ...this.#spec.env() };
    const berth = this.#spec.berth?.() ?? quickestBerth();
    const child = spawn("/bin/sh", ["-c", WATCHED, berth, ...this.#spec.argv], {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      env,
    });
    const exited = new Promise<string>((resolve) => {
      const end = (how: string) => {
        life.ended ??= how;
        // The process id may be reused from now on, so the watcher must not signal it.
        child.stdin?.end("gone\n");
        this.#keep(`--- ${how}\n`);
        resolve(how);
      };
      child.once("error", (error) => end(error.message));
      child.once("exit", (code, signal) => end(signal === null ? `exit code ${code}` : `killed by ${signal}`));
    });
    const life: Life = { child, exited, ended: null };
    child.stdin?.on("error", () => undefined); // The watcher is already gone.
    for (const output of [child.stdout, child.stderr]) output?.on("data", (chunk: Buffer) => this.#keep(`${chunk}`));
    this.#life = life;
    return life;
  }

  async #end(signal: "SIGTERM" | "SIGKILL"): Promise<string> {
    const life = this.#life;
    if (life === null) return "never started";
    if (life.ended === null) life.child.kill(signal);
    return life.exited;
  }

  #keep(text: string): void {
    this.#log += text;
    const excess = this.#log.length - LOG_CHARS_MAX;
    if (excess <= 0) return;
    this.#log = this.#log.slice(excess);
    this.#marked = Math.max(0, this.#marked - excess);
  }
}
