import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const ANSWER_MS_MAX = 120_000;
const OUTPUT_BYTES_MAX = 1 << 26;

/** How Docker's command line failed. */
export class DockerError extends Error {
  readonly code = "docker";

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "DockerError";
  }
}

/** Runs a command and resolves with what it printed. Throws a DockerError; one of `allowed` is as good as exit code 0. */
export async function docker(
  command: readonly [string, ...string[]],
  allowed: readonly number[] = [],
): Promise<string> {
  const [file, ...args] = command;
  try {
    const { stdout } = await run(file, args, { timeout: ANSWER_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX });
    return stdout;
  } catch (error) {
    const { code, stdout = "", stderr = "" } = error as { code?: unknown; stdout?: string; stderr?: string };
    if (typeof code === "number" && allowed.includes(code)) return stdout;
    throw new DockerError(`${command.slice(0, 4).join(" ")}: ${stderr.trim() || (error as Error).message}`, {
      cause: error,
    });
  }
}

/** The directory that paths in a deployment's file count from. */
const DEPLOY = join(import.meta.dirname, "../../../deploy");

/** The words before `-f`, `run` and so on: Compose as a plugin, or the program of old. */
export async function composeCommand(): Promise<readonly [string, ...string[]]> {
  const directory = ["--project-directory", DEPLOY];
  try {
    await docker(["docker", "compose", "version"]);
    return ["docker", "compose", ...directory];
  } catch {
    return ["docker-compose", ...directory];
  }
}
