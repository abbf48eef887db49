import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";

// Only Debian's package is used.
const PYTHON = "/usr/bin/python3";

/** Whether Debian's python3-openstackclient is installed. */
export const hasOpenstackClient = existsSync("/usr/lib/python3/dist-packages/openstackclient");

export interface CommandAnswer {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

/**
 * The openstack command in one process, since its start takes most of a command's time. All commands of one process have the same
 * microversion of the Compute API, because the client keeps it in a global variable.
 */
export class OpenstackClient {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: Interface;
  readonly #answers: AsyncIterator<string>;
  #complaints = "";

  constructor(settings: {
    readonly cloudsFile: string;
    readonly cloud: string;
    readonly computeVersion: string;
    readonly home: string;
  }) {
    const env = {
      ...{ PATH: "/usr/bin:/bin", HOME: settings.home, COLUMNS: "200", LC_ALL: "C.UTF-8" },
      ...{ OS_CLIENT_CONFIG_FILE: settings.cloudsFile, OS_CLOUD: settings.cloud },
      OS_COMPUTE_API_VERSION: settings.computeVersion,
    };
    const script = join(import.meta.dirname, "run-openstack.py");
    this.#child = spawn(PYTHON, [script], { env, cwd: settings.home, stdio: "pipe" });
    this.#child.stderr.on("data", (data) => {
      this.#complaints = `${this.#complaints}${data}`.slice(-4_000);
    });
    this.#lines = createInterface(this.#child.stdout);
    this.#answers = this.#lines[Symbol.asyncIterator]();
  }

  /** Runs one command at a time. Rejects when the process has ended. */
  async run(words: readonly string[]): Promise<CommandAnswer> {
    this.#child.stdin.write(`${JSON.stringify(words)}\n`);
    const { value, done } = await this.#answers.next();
    if (done) throw new Error(`the openstack client has ended: ${this.#complaints}`);
    return JSON.parse(value);
  }

  async close(): Promise<void> {
    this.#lines.close();
    this.#child.stdin.end();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill();
    await ended;
  }
}
