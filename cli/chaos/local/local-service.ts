import type { RunningGuest } from "../../../core/audit/facts.ts";
import type { HostPort } from "../../../runtime/setting-kinds.ts";
import type { FakeGuest } from "../../../services/compute-agent/fake-driver.ts";
import type { Part, Role } from "../chaos-cloud.ts";
import { ServiceProcess, type ServiceSpec } from "./service-process.ts";

/** One of Berth's services in a local cloud. */
export class LocalService extends ServiceProcess implements Part {
  readonly role: Role;
  readonly cell: string | null;

  constructor(spec: ServiceSpec & { readonly role: Role; readonly cell: string | null }) {
    super(spec);
    this.role = spec.role;
    this.cell = spec.cell;
  }
}

/** An agent's process with the address of its probes. */
export class AgentProcess extends LocalService {
  readonly id: string;
  readonly hosts: readonly string[];
  readonly journal: string;
  #probes: HostPort = { host: "127.0.0.1", port: 0 };

  constructor(options: {
    readonly id: string;
    readonly cell: string;
    readonly hosts: readonly string[];
    readonly journal: string;
    readonly env: ServiceSpec["env"];
    readonly berth?: () => string;
  }) {
    super({ name: options.id, role: "agent", argv: ["compute-agent"], ...options });
    this.id = options.id;
    this.hosts = options.hosts;
    this.journal = options.journal;
  }

  override async start(): Promise<string> {
    const note = await super.start();
    const [, host = "", port] = /probes at (\S+):(\d+)/.exec(note) ?? [];
    this.#probes = { host, port: Number(port) };
    return note;
  }

  /** Where its page /guests is; another place after each start. */
  get probes(): HostPort {
    return this.#probes;
  }

  /** What exists on its hosts, by the fake driver's own word; null when nobody answers. */
  async guests(): Promise<readonly FakeGuest[] | null> {
    if (!this.running) return null;
    try {
      const answer = await fetch(`http://${this.#probes.host}:${this.#probes.port}/guests`, {
        signal: AbortSignal.timeout(2_000),
      });
      return ((await answer.json()) as { readonly guests: readonly FakeGuest[] }).guests;
    } catch {
      return null;
    }
  }
}

/** What runs on the hosts of the agents that answer. */
export async function runningGuests(
  agents: readonly AgentProcess[],
): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
  const found = new Map<string, RunningGuest[]>();
  for (const agent of agents) {
    const guests = await agent.guests();
    if (guests === null) continue;
    for (const host of agent.hosts) found.set(host, []);
    for (const guest of guests) if (guest.running) found.get(guest.host)?.push(guest);
  }
  return found;
}

/** A conductor, which keeps its address over restarts. */
export class ConductorProcess extends LocalService {
  /** 0 until it has started for the first time. */
  port = 0;

  override async start(): Promise<string> {
    const note = await super.start();
    this.port = Number(/agents at \S+?:(\d+)/.exec(note)?.[1] ?? 0);
    return note;
  }
}
