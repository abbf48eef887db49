import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Pool } from "pg";
import { type LocalNats, startLocalNats } from "../../adapters/nats/local-server.ts";
import { ensureDatabase } from "../../adapters/postgres/databases.ts";
import { type EmbeddedPostgres, startEmbedded } from "../../adapters/postgres/embedded.ts";
import { createPool } from "../../adapters/postgres/pool.ts";
import { PostgresCellStore } from "../../adapters/postgres/postgres-cell-store.ts";
import type { RunningGuest } from "../../core/audit/facts.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import type { FakeGuest } from "../../services/compute-agent/fake-driver.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import { eventually } from "../eventually.ts";
import { ServiceProcess } from "./service-process.ts";

export type Environment = Readonly<Record<string, string>>;

export interface CellOptions {
  readonly conductors: number;
  readonly agents: number;
  readonly hostsPerAgent: number;
  /** CUSTOM_SLOT that each host offers, beside plenty of everything else. */
  readonly slotsPerHost: number;
  /** Settings of all services of the cell. */
  readonly env: Environment;
  readonly conductorEnv: Environment;
}

/** Small, and quick to die: nothing here outlives the test. */
export const POSTGRES_OPTIONS = { durable: false, settings: { shared_buffers: "32MB", max_connections: "120" } };

const PATIENT = { everyMs: 50, withinMs: 90_000 };

/** An agent's process with the address of its probes. */
export class AgentProcess extends ServiceProcess {
  readonly id: string;
  readonly hosts: readonly string[];
  #probes = "";

  constructor(options: { readonly id: string; readonly hosts: readonly string[]; readonly env: () => Environment }) {
    super({ name: `compute-agent ${options.id}`, argv: ["compute-agent"], env: options.env });
    this.id = options.id;
    this.hosts = options.hosts;
  }

  override async start(): Promise<string> {
    const note = await super.start();
    this.#probes = `http://${/probes at (\S+)/.exec(note)?.[1]}`;
    return note;
  }

  /** What exists on its hosts, by the fake driver's own word; null when nobody answers. */
  async guests(): Promise<readonly FakeGuest[] | null> {
    if (!this.running) return null;
    try {
      const answer = await fetch(`${this.#probes}/guests`, { signal: AbortSignal.timeout(2_000) });
      return ((await answer.json()) as { readonly guests: readonly FakeGuest[] }).guests;
    } catch {
      return null;
    }
  }
}

/** A conductor, which keeps its address over restarts. */
export class ConductorProcess extends ServiceProcess {
  address = "127.0.0.1:0";

  override async start(): Promise<string> {
    const note = await super.start();
    this.address = /agents at ([^\s,]+)/.exec(note)?.[1] ?? "";
    return note;
  }
}

/** One cell: its own Postgres server, its own nats-server, its conductors and agents. */
export class E2eCell {
  readonly name: string;
  /** Hosts of this cell have it, those of no other. */
  readonly trait: string;
  readonly postgres: EmbeddedPostgres;
  readonly nats: LocalNats;
  readonly databaseUrl: string;
  readonly pool: Pool;
  readonly store: PostgresCellStore;
  readonly conductors: readonly ConductorProcess[];
  readonly agents: readonly AgentProcess[];

  private constructor(
    name: string,
    servers: { readonly postgres: EmbeddedPostgres; readonly nats: LocalNats },
    options: CellOptions & { readonly dir: string },
  ) {
    this.name = name;
    this.trait = traitOf(name);
    this.postgres = servers.postgres;
    this.nats = servers.nats;
    this.databaseUrl = servers.postgres.url("cell");
    this.pool = createPool({ url: this.databaseUrl, applicationName: "e2e test", connectionsMax: 4 });
    this.store = new PostgresCellStore(this.pool);
    this.conductors = range(options.conductors).map((index) => this.#conductor(index, options));
    this.agents = range(options.agents).map((index) => this.#agent(index, options));
  }

  /** Its two servers run; `startServices` follows once the databases are prepared. */
  static async open(name: string, options: CellOptions & { readonly dir: string }): Promise<E2eCell> {
    const [postgres, nats] = await Promise.all([
      startEmbedded({ ...POSTGRES_OPTIONS, dataDir: join(options.dir, name, "postgres") }),
      startLocalNats({ cells: [name], writeConfig: natsConfig, dir: join(options.dir, name, "nats") }),
    ]);
    await ensureDatabase(postgres.url("postgres"), "cell");
    return new E2eCell(name, { postgres, nats }, options);
  }

  async startServices(): Promise<void> {
    await Promise.all(this.conductors.map((conductor) => conductor.start()));
    await Promise.all(this.agents.map((agent) => agent.start()));
  }

  processes(): readonly ServiceProcess[] {
    return [...this.conductors, ...this.agents];
  }

  /** Starts what is missing, and waits until every host is up. */
  async makeWhole(): Promise<void> {
    await Promise.all(this.processes().map((one) => (one.running ? null : one.start())));
    const count = this.agents.reduce((sum, agent) => sum + agent.hosts.length, 0);
    const up = async () => (await this.store.hosts()).filter((host) => host.up).length === count;
    await eventually(`all hosts of ${this.name} to be up`, up, PATIENT);
  }

  /** Rows of a query; one column named `value` is enough for most. */
  async query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.pool.query<Row>(text, [...values])).rows;
  }

  /** Hosts on which the server holds something. */
  async holders(uuid: string): Promise<readonly string[]> {
    const rows = await this.query<{ name: string }>(
      `select distinct root.name from allocations a
       join resource_providers p on p.id = a.provider_id join resource_providers root on root.id = p.root_id
       where a.consumer_uuid = $1 order by 1`,
      [uuid],
    );
    return rows.map((row) => row.name);
  }

  /** Open tasks (of these servers), with the name of the conductor that owns each. */
  openTasks(
    uuids: readonly string[] | null = null,
  ): Promise<readonly { id: string; server: string; owner: string | null; epoch: number }[]> {
    return this.query(
      `select t.id, t.server_uuid as server, c.name as owner, t.epoch from tasks t left join conductors c on c.id = t.owner
       where t.ended_at is null and ($1::uuid[] is null or t.server_uuid = any($1))`,
      [uuids],
    );
  }

  /** How many sessions wait for somebody's lock. */
  async lockWaiters(): Promise<number> {
    const [row] = await this.query<{ count: number }>(
      "select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock'",
    );
    return row?.count ?? 0;
  }

  /** What runs on the hosts of the agents that answer. */
  async runningGuests(): Promise<ReadonlyMap<string, readonly RunningGuest[]>> {
    const found = new Map<string, RunningGuest[]>();
    for (const agent of this.agents) {
      const guests = await agent.guests();
      if (guests === null) continue;
      for (const host of agent.hosts) found.set(host, []);
      for (const guest of guests) if (guest.running) found.get(guest.host)?.push(guest);
    }
    return found;
  }

  async close(): Promise<void> {
    await Promise.all(this.processes().map((one) => one.kill()));
    await this.pool.end();
    await Promise.all([this.postgres.stop(), this.nats.kill()]);
  }

  #conductor(index: number, options: CellOptions): ConductorProcess {
    const conductor: ConductorProcess = new ConductorProcess({
      name: `conductor ${this.name}/${index + 1}`,
      argv: ["conductor"],
      env: () => ({
        ...options.env,
        ...options.conductorEnv,
        BERTH_CELL: this.name,
        BERTH_CELL_DATABASE_URL: this.databaseUrl,
        BERTH_NATS_URL: this.nats.conductorUrl(this.name),
        BERTH_LISTEN: conductor.address,
        BERTH_NAME: conductor.name,
      }),
    });
    return conductor;
  }

  #agent(index: number, options: CellOptions & { readonly dir: string }): AgentProcess {
    const id = `${this.name}-agent-${index + 1}`;
    const hosts = range(options.hostsPerAgent).map((host) => this.#host(`${id}-host-${host + 1}`, options));
    const hostsFile = join(options.dir, this.name, `${id}.json`);
    writeFileSync(hostsFile, JSON.stringify({ hosts }));
    return new AgentProcess({
      id,
      hosts: hosts.map((host) => host.name),
      env: () => ({
        ...options.env,
        BERTH_AGENT_ID: id,
        BERTH_CONDUCTORS: this.conductors.map((conductor) => conductor.address).join(","),
        BERTH_HOSTS_FILE: hostsFile,
        BERTH_DATA_DIR: join(options.dir, this.name),
      }),
    });
  }

  #host(name: string, { slotsPerHost }: CellOptions): HostConfig {
    return {
      name,
      inventories: {
        VCPU: { total: 10_000 },
        MEMORY_MB: { total: 10_000_000 },
        DISK_GB: { total: 1_000_000 },
        CUSTOM_SLOT: { total: slotsPerHost },
      },
      traits: [this.trait],
    };
  }
}

export function traitOf(cell: string): string {
  return `CUSTOM_${cell.toUpperCase().replaceAll("-", "_")}`;
}

function range(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index);
}
