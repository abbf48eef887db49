import { setTimeout as delay } from "node:timers/promises";
import type { Part, Role } from "../chaos-cloud.ts";
import { DockerError, docker } from "./docker.ts";

const HEALTHY_MS_MAX = 300_000;
const LOOK_MS = 500;

/** The role and cell that the name of a Compose service implies, or null for a service that no fault targets. */
export function roleOf(service: string): { readonly role: Role; readonly cell: string | null } | null {
  const above = /^(api|scheduler|postgres|nats|redis)(-\d+)?$/.exec(service);
  if (above) return { role: above[1] as Role, cell: null };
  const [, cell, role] = /^(cell\d+)-(postgres|nats|conductor|agent)(-\d+)?$/.exec(service) ?? [];
  return cell === undefined ? null : { role: role as Role, cell };
}

/** One container of a deployment. */
export class ContainerPart implements Part {
  readonly name: string;
  readonly role: Role;
  readonly cell: string | null;
  readonly id: string;
  #running = true;
  #paused = false;

  constructor(service: {
    readonly name: string;
    readonly role: Role;
    readonly cell: string | null;
    readonly id: string;
  }) {
    this.name = service.name;
    this.role = service.role;
    this.cell = service.cell;
    this.id = service.id;
  }

  get running(): boolean {
    return this.#running;
  }

  /** Reads the container's state, because an earlier run that was killed may have left it dead or paused. */
  async look(): Promise<void> {
    const status = (await docker(["docker", "inspect", "--format", "{{.State.Status}}", this.id])).trim();
    this.#paused = status === "paused";
    this.#running = this.#paused || status === "running" || status === "restarting";
  }

  async kill(): Promise<void> {
    this.#running = false;
    // Docker kills only running containers, and resumes only paused ones.
    await this.resume();
    await docker(["docker", "kill", this.id]);
  }

  /** Resolves when the container's own health check says that it is healthy. */
  async start(): Promise<void> {
    await docker(["docker", "start", this.id]);
    this.#running = true;
    await this.healthy();
  }

  async pause(): Promise<void> {
    this.#paused = true;
    await docker(["docker", "pause", this.id]);
  }

  async resume(): Promise<void> {
    if (!this.#paused) return;
    this.#paused = false;
    await docker(["docker", "unpause", this.id]);
  }

  async healthy(): Promise<void> {
    const deadline = performance.now() + HEALTHY_MS_MAX;
    const format = "{{if .State.Health}}{{.State.Health.Status}}{{else}}{{.State.Status}}{{end}}";
    for (;;) {
      const status = (await docker(["docker", "inspect", "--format", format, this.id])).trim();
      if (status === "healthy" || status === "running") return;
      if (performance.now() > deadline) throw new DockerError(`${this.name} is ${status} after ${HEALTHY_MS_MAX} ms`);
      await delay(LOOK_MS);
    }
  }
}
