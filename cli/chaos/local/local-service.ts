import type { RunningGuest } from "../../../core/audit/facts.ts";
import type { HostPort } from "../../../runtime/setting-kinds.ts";
import type { FakeGuest } from "../../../services/compute-agent/fake-driver.ts";
import type { Part, Role } from "../chaos-cloud.ts";
import { ServiceProcess, type ServiceSpec } from "./service-process.ts";

/** One of Berth's services in a local cloud. */
export class LocalService extends ServiceProcess implements Part {
  readonly role: Role;
  readonly cell: string | null;
  #note = "";

  constructor(spec: ServiceSpec & { readonly role: Role; readonly cell: string | null }) {
    super(spec);
    this.role = spec.role;
    this.cell = spec.cell;
  }

  override async start(): Promise<string> {
    this.#note = await super.start();
    return this.#note;
  }

  /** Where its probes are, for services that have them apart; null before its start, and for others. */
  get probes(): HostPort | null {
    const [, host, port] = /probes at (\S+):(\d+)/.exec(this.#note) ?? [];
    return host === undefined ? null : { host, port: Number(port) };
  }
}

/** An agent's process with the address of its probes. */
export class LocalAgent extends LocalService {
  readonly id: string;
  readonly hosts: readonly string[];
  readonly journal: string;
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

  /** What exists on its hosts, by the fake driver's own word; null when nobody answers. */
  async guests(): Promise<readonly FakeGuest[] | null> {
    const { probes } = this;
    if (!this.running || probes === null) return null;
    try {
      const answer = await fetch(`http://${probes.host}:${probes.port}/guests`, {
        signal: AbortSignal.timeout(2_000),
      });
      return ((await answer.json()) as { readonly guests: readonly FakeGuest[] }).guests;
    } catch {
      return null;
    }
  }
}

/** What runs on the hosts of the agents that answer. */
export function runningGuests(agents: readonly LocalAgent[]): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
  return guestsOf(agents, ({ running }) => running);
}

/** What exists on the hosts of the agents that answer, whether it runs or not. */
export function copiesOf(agents: readonly LocalAgent[]): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
  return guestsOf(agents, () => true);
}

async function guestsOf(
  agents: readonly LocalAgent[],
  isMeant: (guest: FakeGuest) => boolean,
): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
  const found = new Map<string, RunningGuest[]>();
  for (const agent of agents) {
    const guests = await agent.guests();
    if (guests === null) continue;
    for (const host of agent.hosts) found.set(host, []);
    for (const guest of guests) if (isMeant(guest)) found.get(guest.host)?.push(guest);
  }
  return found;
}

/** A conductor, which keeps its address over restarts. */
export class LocalConductor extends LocalService {
  /** 0 until it has started for the first time. */
  port = 0;

  override async start(): Promise<string> {
    const note = await super.start();
    this.port = Number(/agents at \S+?:(\d+)/.exec(note)?.[1] ?? 0);
    return note;
  }
}
