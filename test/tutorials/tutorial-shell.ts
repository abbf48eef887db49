import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OWN_BERTH } from "../../chaos/local/service-process.ts";
import { eventually } from "../rigs/eventually.ts";
import { missingLine, type Tutorial, type TutorialStep } from "./read-tutorial.ts";

/** Commands that only read. Their output may follow a change a moment later, so they are repeated as a reader would repeat them. */
const READS = /^(npx berth (explain|host (list|show)|top --once|settings show)|curl -s )/;
/** Above this, a command hangs. */
const COMMAND_MS_MAX = 90_000;
const PATIENT = { everyMs: 200, withinMs: 30_000 };

/**
 * A bash in which a reader types the commands of one page, one after the other, in a directory of their own. `npx berth` is the `berth` of
 * this working tree. Variables and functions live until it ends.
 */
export class TutorialShell {
  readonly #bash: ChildProcess;
  readonly #substitutes: Readonly<Record<string, string>>;
  readonly #directory: string;
  #output = "";

  /** `substitutes` replaces addresses of the page with those of the test. */
  constructor(options: {
    readonly directory: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly substitutes?: Readonly<Record<string, string>>;
  }) {
    const { directory, env = {}, substitutes = {} } = options;
    mkdirSync(directory, { recursive: true });
    this.#directory = directory;
    this.#substitutes = substitutes;
    this.#bash = spawn("bash", ["--noprofile", "--norc"], {
      ...{ cwd: directory, env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] },
      // Its own process group, which `close` ends together with what the page started in the background.
      detached: true,
    });
    for (const stream of [this.#bash.stdout, this.#bash.stderr])
      stream?.on("data", (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
    // Broken pipes end the wait for the command's end.
    this.#bash.stdin?.on("error", () => undefined);
    this.#bash.stdin?.write(`berth() { '${OWN_BERTH}' "$@"; }\nnpx() { "$@"; }\n`);
  }

  /** Writes the page's files and types its commands. Throws when a command fails or does not show the page's output. */
  async follow(tutorial: Tutorial): Promise<void> {
    const { page, files, steps } = tutorial;
    for (const used of Object.keys(this.#substitutes))
      if (!steps.some(({ command }) => command.includes(used))) throw new Error(`${page} does not mention ${used}`);
    for (const { name, text } of files) writeFileSync(join(this.#directory, name), text);
    for (const step of steps) await this.#followStep(page, step);
  }

  async #followStep(page: string, step: TutorialStep): Promise<void> {
    let wrong = "";
    const succeeds = async (): Promise<boolean> => {
      const { code, output } = await this.type(step.command);
      const missing = missingLine(step.output, output);
      wrong = `${page}: ${step.command}\nexit code ${code}, lacks "${missing ?? ""}" in:\n${output}`;
      return code === 0 && missing === null;
    };
    const isRight = READS.test(step.command)
      ? await eventually("the page's output", succeeds, PATIENT).catch(() => false)
      : await succeeds();
    if (!isRight) throw new Error(wrong);
  }

  /** Types a command. Resolves with its exit code and output, standard error included. */
  async type(command: string): Promise<{ readonly code: number; readonly output: string }> {
    const mark = randomUUID();
    let text = command;
    for (const [page, real] of Object.entries(this.#substitutes)) text = text.replaceAll(page, real);
    this.#output = "";
    // Both streams are closed for the mark's process first, so that the mark comes last.
    this.#bash.stdin?.write(`{ ${text}\n} </dev/null 2>&1\nprintf '\\n%s %d\\n' ${mark} $?\n`);
    const found = await eventually(
      `the end of ${command}`,
      () => {
        if (this.#bash.exitCode !== null) throw new Error(`${command} ended the shell: ${this.#output}`);
        return new RegExp(`\\n${mark} (\\d+)\\n`).exec(this.#output);
      },
      { everyMs: 10, withinMs: COMMAND_MS_MAX },
    );
    return { code: Number(found[1]), output: this.#output.slice(0, found.index) };
  }

  /** Ends the shell and what the page started in the background. Resolves when the shell has ended. */
  async close(): Promise<void> {
    const { pid, exitCode } = this.#bash;
    if (pid === undefined || exitCode !== null) return;
    const ended = once(this.#bash, "exit");
    process.kill(-pid, "SIGKILL");
    await ended;
  }
}
