import { execFileSync } from "node:child_process";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const PROJECT = "berth-compose-test";
/** Not the port of a deployment that may run beside it. */
const PORT = "18774";
const UP_MS_MAX = 900_000;

/** A deployment of deploy/cells.ts by docker-compose, with secrets and file of its own. */
export class Deployment {
  readonly apiUrl = `http://127.0.0.1:${PORT}`;
  readonly #dir: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor(dir: string, env: NodeJS.ProcessEnv) {
    this.#dir = dir;
    this.#env = { ...env, BERTH_PORT: PORT };
  }

  buildImages(local: boolean): void {
    this.#run(join(ROOT, "deploy/build-images.sh"), local ? ["--local"] : []);
  }

  write(cells: number, hosts: number): void {
    const secrets = join(this.#dir, "secrets");
    const node = (script: string, args: readonly string[]) =>
      this.#run(process.execPath, [join(ROOT, "deploy", script), ...args]);
    node("make-secrets.ts", [`${cells}`, "--out", secrets]);
    node("cells.ts", [`${cells}`, "--hosts", `${hosts}`, "--secrets", secrets, "--out", this.#file]);
  }

  up(): void {
    this.compose(["up", "-d", "--no-build"]);
  }

  /** All containers end; those that took longer than ten seconds were killed. */
  stop(): void {
    this.compose(["stop"]);
  }

  down(): void {
    this.compose(["down", "-v", "--remove-orphans"]);
  }

  compose(args: readonly string[]): string {
    return this.#run("docker-compose", [
      "-p",
      PROJECT,
      "--project-directory",
      join(ROOT, "deploy"),
      "-f",
      this.#file,
      ...args,
    ]);
  }

  docker(args: readonly string[]): string {
    return this.#run("docker", args);
  }

  containerOf(service: string): string {
    return `${PROJECT}_${service}_1`;
  }

  /** A cell's queue keeps running; what the API tier says to it and hears from it does not pass. */
  cutFromHub(cell: string): void {
    this.docker(["network", "disconnect", `${PROJECT}_uplink-${cell}`, this.containerOf(`${cell}-nats`)]);
  }

  heal(cell: string): void {
    const name = `${cell}-nats`;
    this.docker(["network", "connect", "--alias", name, `${PROJECT}_uplink-${cell}`, this.containerOf(name)]);
  }

  /** Exit codes of containers that have ended, by service. */
  exitCode(service: string): number {
    return Number(this.docker(["inspect", "--format", "{{.State.ExitCode}}", this.containerOf(service)]));
  }

  get #file(): string {
    return join(this.#dir, "compose.yaml");
  }

  /** Its output; throws, with the output, unless it ends with 0. */
  #run(command: string, args: readonly string[]): string {
    return execFileSync(command, [...args], {
      env: this.#env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: UP_MS_MAX,
      maxBuffer: 1 << 26,
    });
  }
}
