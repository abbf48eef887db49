import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const ANSWER_MS_MAX = 120_000;
const OUTPUT_BYTES_MAX = 1 << 26;

/** A failure of Docker's command line. */
export class DockerError extends Error {
  readonly code = "docker";

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "DockerError";
  }
}

/** Runs a command and resolves with its output. Throws a DockerError unless the exit code is 0 or one of `allowed`. */
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

/** The directory to which paths in the Compose file are relative. */
const DEPLOY = join(import.meta.dirname, "../../deploy");

/** The words before `-f`, `run` and so on: `docker compose` with the plugin, or the older program `docker-compose`. */
export async function composeCommand(): Promise<readonly [string, ...string[]]> {
  const directory = ["--project-directory", DEPLOY];
  try {
    await docker(["docker", "compose", "version"]);
    return ["docker", "compose", ...directory];
  } catch {
    return ["docker-compose", ...directory];
  }
}
