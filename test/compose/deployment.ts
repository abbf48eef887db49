import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../..");
const PROJECT = "berth-compose-test";
/** Ports that differ from those of a deployment which may run beside the test. */
const PORT = "18774";
const CONSOLE_PORT = "16083";
/** Each container ends within ten seconds, and is then removed. */
const DOWN_MS_MAX = 180_000;

const runFile = promisify(execFile);

/**
 * A deployment of deploy/cells.ts by docker-compose, with its own secrets and its own file. When `signal` aborts, every call except `down`
 * rejects.
 */
export class Deployment {
  readonly apiUrl = `http://127.0.0.1:${PORT}`;
  readonly #dir: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #signal: AbortSignal;

  constructor(dir: string, env: NodeJS.ProcessEnv, signal: AbortSignal) {
    this.#dir = dir;
    // The ports are published only on loopback, and only for the duration of the test.
    const ports = { BERTH_PORT: PORT, BERTH_CONSOLE_PORT: CONSOLE_PORT };
    this.#env = { ...env, ...ports, BERTH_ALLOW_UNAUTHENTICATED_NETWORK: "true" };
    this.#signal = signal;
  }

  async buildImages(local: boolean): Promise<void> {
    await this.#run(join(ROOT, "deploy/build-images.sh"), local ? ["--local"] : []);
  }

  async write(cells: number, hosts: number): Promise<void> {
    const secrets = join(this.#dir, "secrets");
    const node = (script: string, args: readonly string[]) =>
      this.#run(process.execPath, [join(ROOT, "deploy", script), ...args]);
    await node("make-secrets.ts", [`${cells}`, "--out", secrets]);
    await node("cells.ts", [`${cells}`, "--hosts", `${hosts}`, "--secrets", secrets, "--out", this.#file]);
  }

  async up(): Promise<void> {
    await this.compose(["up", "-d", "--no-build"]);
  }

  /** Stops all containers. Those that took longer than ten seconds were killed. */
  async stop(): Promise<void> {
    await this.compose(["stop"]);
  }

  async down(): Promise<void> {
    await this.compose(["down", "-v", "--remove-orphans"], AbortSignal.timeout(DOWN_MS_MAX));
  }

  compose(args: readonly string[], signal?: AbortSignal): Promise<string> {
    const project = ["-p", PROJECT, "--project-directory", join(ROOT, "deploy"), "-f", this.#file];
    return this.#run("docker-compose", [...project, ...args], signal);
  }

  docker(args: readonly string[]): Promise<string> {
    return this.#run("docker", args);
  }

  containerOf(service: string): string {
    return `${PROJECT}_${service}_1`;
  }

  /** Cuts a cell off. Its queue keeps running, but no message passes between it and the API tier. */
  async cutFromHub(cell: string): Promise<void> {
    await this.docker(["network", "disconnect", `${PROJECT}_uplink-${cell}`, this.containerOf(`${cell}-nats`)]);
  }

  async heal(cell: string): Promise<void> {
    const name = `${cell}-nats`;
    await this.docker(["network", "connect", "--alias", name, `${PROJECT}_uplink-${cell}`, this.containerOf(name)]);
  }

  /** Runs a chaos plan on the deployment. Throws, with the printed output, unless the plan passes. */
  chaos(plan: string, duration: string): Promise<string> {
    const on = ["--target", "compose", "--project", PROJECT, "--compose-file", this.#file];
    return this.#run(join(ROOT, "bin/berth"), ["chaos", "--plan", plan, "--duration", duration, ...on]);
  }

  /** Exit codes of ended containers, by service. */
  async exitCode(service: string): Promise<number> {
    return Number(await this.docker(["inspect", "--format", "{{.State.ExitCode}}", this.containerOf(service)]));
  }

  get #file(): string {
    return join(this.#dir, "compose.yaml");
  }

  /** Runs a command and returns its output. Rejects with its `stderr` unless it ends with 0. */
  async #run(command: string, args: readonly string[], signal: AbortSignal = this.#signal): Promise<string> {
    const { stdout } = await runFile(command, [...args], { env: this.#env, maxBuffer: 1 << 26, signal });
    return stdout;
  }
}
