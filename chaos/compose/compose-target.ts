import { setTimeout as delay } from "node:timers/promises";
import type { AuditReport } from "../../audit/audit-report.ts";
import { CannotHarmError, type ChaosCloud, type Death, isServer, type Link } from "../chaos-cloud.ts";
import { ContainerPart, roleOf } from "./container-part.ts";
import { composeCommand, DockerError, docker } from "./docker.ts";
import { NetworkLink } from "./network-link.ts";

export interface ComposeTargetOptions {
  /** Compose's project name of the deployment. */
  readonly project: string;
  /** Path of the Compose file. */
  readonly file: string;
}

const LOAD_BALANCER = "load-balancer";
const API_PORT = "8774";
const HOSTS_UP_MS_MAX = 300_000;
const LOOK_MS = 500;
const LOG_LINES = "40";
const FLUSH =
  'REDISCLI_AUTH="$(sed -n "s/^requirepass *//p" /etc/berth/redis.conf | tr -d \'"\')" exec redis-cli flushall';

/** A running deployment of deploy/compose.yaml, controlled through Docker's command line. */
export class ComposeTarget implements ChaosCloud {
  readonly target = "compose";
  readonly cells: readonly string[];
  readonly parts: readonly ContainerPart[];
  readonly links: readonly Link[];
  readonly apiUrls: readonly string[];
  readonly #compose: readonly [string, ...string[]];

  private constructor(options: {
    readonly parts: readonly ContainerPart[];
    readonly apiUrl: string;
    readonly compose: readonly [string, ...string[]];
    readonly project: string;
  }) {
    this.parts = options.parts;
    this.apiUrls = [options.apiUrl];
    this.#compose = options.compose;
    this.cells = [...new Set(options.parts.flatMap(({ cell }) => cell ?? []))];
    this.links = linksOf(options.parts, options.project);
  }

  /** Finds the deployment's containers. Throws a DockerError when there are none, or hosts do not come up. */
  static async open({ project, file }: ComposeTargetOptions): Promise<ComposeTarget> {
    const format = '{{.ID}} {{.Label "com.docker.compose.service"}} {{.Label "com.docker.compose.oneoff"}}';
    const label = `label=com.docker.compose.project=${project}`;
    const listed = (await docker(["docker", "ps", "--all", "--no-trunc", "--filter", label, "--format", format]))
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => line.split(" "))
      .filter(([, , oneOff]) => oneOff !== "True");
    const parts = listed.flatMap(([id = "", name = ""]) => {
      const is = roleOf(name);
      return is === null ? [] : [new ContainerPart({ name, id, ...is })];
    });
    const balancer = listed.find(([, name]) => name === LOAD_BALANCER)?.[0];
    if (balancer === undefined)
      throw new DockerError(
        `no deployment named ${project} runs here: start it with docker compose, or name another one`,
      );
    await Promise.all(parts.map((part) => part.look()));
    const [address = ""] = (await docker(["docker", "port", balancer, API_PORT])).split("\n");
    const compose: [string, ...string[]] = [...(await composeCommand()), "-p", project, "-f", file];
    const target = new ComposeTarget({ parts, apiUrl: `http://${address.trim()}`, compose, project });
    await target.makeWhole();
    return target;
  }

  async flushRedis(): Promise<void> {
    const redis = this.parts.find(({ role }) => role === "redis");
    if (redis !== undefined) await docker(["docker", "exec", redis.id, "sh", "-c", FLUSH]);
  }

  async failover(): Promise<void> {
    throw new CannotHarmError("the database of a cell in containers has no standby");
  }

  async restoreStandby(): Promise<void> {
    throw new CannotHarmError("the database of a cell in containers has no standby");
  }

  async fillDisk(): Promise<void> {
    throw new CannotHarmError("the disks of containers cannot be filled one by one");
  }

  async freeDisk(): Promise<void> {
    throw new CannotHarmError("the disks of containers cannot be filled one by one");
  }

  async makeWhole(): Promise<void> {
    await Promise.all(this.links.map((link) => link.heal()));
    for (const servers of [true, false]) {
      const some = this.parts.filter((part) => isServer(part) === servers);
      await Promise.all(
        some.map(async (part) => {
          await part.resume();
          if (!part.running) await part.start();
          else await part.healthy();
        }),
      );
    }
    await this.#hostsUp();
  }

  async audit(options: { readonly pauseMs: number; readonly patienceMs: number }): Promise<AuditReport> {
    const waits = ["--pause", `${options.pauseMs}ms`, "--patience", `${options.patienceMs}ms`];
    // Exit code 1 means that the audit found violations, which its output says.
    const text = await docker([...this.#compose, "run", "--rm", "-T", "berth", "audit", "--json", ...waits], [1]);
    try {
      return JSON.parse(text.slice(text.indexOf("{"))) as AuditReport;
    } catch (cause) {
      throw new DockerError(`the audit printed ${text.slice(0, 300)}`, { cause });
    }
  }

  async holders(): Promise<null> {
    return null;
  }

  deaths(): readonly Death[] {
    return [];
  }

  async logs(): Promise<readonly { readonly part: string; readonly text: string }[]> {
    return Promise.all(
      this.parts.map(async ({ name, id }) => ({
        part: name,
        text: await docker(["docker", "logs", "--tail", LOG_LINES, id]).catch((error: Error) => error.message),
      })),
    );
  }

  /** Leaves the deployment running, with every link and part whole. */
  async close(): Promise<void> {
    // A part or link that cannot be repaired must not prevent the repair of the others.
    const healed = await Promise.allSettled(this.links.map((link) => link.heal()));
    const mend = async (part: ContainerPart) => {
      await part.resume();
      if (!part.running) await part.start();
    };
    const mended = await Promise.allSettled(this.parts.map(mend));
    for (const one of [...healed, ...mended]) if (one.status === "rejected") throw one.reason;
  }

  async #hostsUp(): Promise<void> {
    const deadline = performance.now() + HOSTS_UP_MS_MAX;
    for (;;) {
      const states = await this.#hostStates().catch(() => []);
      if (states.length > 0 && states.every((state) => state === "up")) return;
      if (performance.now() > deadline) throw new DockerError(`not all hosts came up within ${HOSTS_UP_MS_MAX} ms`);
      await delay(LOOK_MS);
    }
  }

  async #hostStates(): Promise<readonly string[]> {
    const answer = await fetch(`${this.apiUrls[0]}/v2.1/os-hypervisors/detail`, {
      signal: AbortSignal.timeout(10_000),
    });
    const { hypervisors } = (await answer.json()) as { readonly hypervisors: readonly { readonly state: string }[] };
    return hypervisors.map(({ state }) => state);
  }
}

/** Links from a cell's two servers to the API tier, and from its agents to its conductors. */
function linksOf(parts: readonly ContainerPart[], project: string): readonly Link[] {
  const above = { name: "above", role: "above", cell: null } as const;
  return parts.flatMap((part) => {
    if (part.cell === null) return [];
    if (part.role === "postgres" || part.role === "nats") {
      return [new NetworkLink({ from: above, to: part, network: `${project}_uplink-${part.cell}`, member: part })];
    }
    if (part.role !== "agent") return [];
    const conductors = { name: `${part.cell}-conductors`, role: "conductor", cell: part.cell } as const;
    return [new NetworkLink({ from: part, to: conductors, network: `${project}_${part.cell}`, member: part })];
  });
}
