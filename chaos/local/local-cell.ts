import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type LocalNats, startLocalNats } from "../../adapters/nats/local-server.ts";
import { ensureDatabase } from "../../adapters/postgres/client/databases.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import type { HostConfig } from "../../services/compute-agent/host-config.ts";
import type { LinkEnd, Part } from "../chaos-cloud.ts";
import { ChildServerPart } from "./child-server-part.ts";
import { type DatabaseOptions, DatabaseServer } from "./database-server.ts";
import { atPort, type Links } from "./links.ts";
import { LocalAgent } from "./local-agent.ts";
import { LocalConductor } from "./local-conductor.ts";
import type { Openings } from "./openings.ts";

export type Environment = Readonly<Record<string, string>>;

export interface LocalCellOptions {
  readonly conductors: number;
  readonly agents: number;
  readonly hostsPerAgent: number;
  /** Amount of CUSTOM_SLOT that each host offers, besides plenty of everything else. */
  readonly slotsPerHost: number;
  /** Settings for all services of the cell. */
  readonly env: Environment;
  readonly conductorEnv: Environment;
  /** Further settings for the agent of this id. An agent that discovers its machine gets no hosts file, and its host needs the name of its first host. */
  readonly agentEnv?: (id: string) => Environment;
  /** Options for the Postgres servers of the cloud. */
  readonly database: DatabaseOptions;
  /** Returns the path of the `berth` that starts the named part. It is called for each start, so that versions can be mixed. */
  readonly berth: (part: string) => string;
}

const ABOVE: LinkEnd = { name: "above", role: "above", cell: null };

/** The ports under which a process reaches the two servers of its cell. */
interface ServerPorts {
  readonly postgres: () => number;
  readonly nats: () => number;
}

/** One cell as processes: its own Postgres server, its own nats-server, its conductors and agents. */
export class LocalCell {
  readonly name: string;
  /** The trait that the hosts of this cell have, and those of no other cell. */
  readonly trait: string;
  readonly database: DatabaseServer;
  readonly nats: LocalNats;
  readonly conductors: readonly LocalConductor[];
  readonly agents: readonly LocalAgent[];
  readonly parts: readonly Part[];
  readonly #above: ServerPorts;

  private constructor(
    name: string,
    servers: { readonly database: DatabaseServer; readonly nats: LocalNats },
    services: { readonly conductors: readonly LocalConductor[]; readonly agents: readonly LocalAgent[] },
    above: ServerPorts,
  ) {
    this.name = name;
    this.trait = traitOf(name);
    this.database = servers.database;
    this.nats = servers.nats;
    this.conductors = services.conductors;
    this.agents = services.agents;
    this.#above = above;
    const bus = new ChildServerPart({ name: `${name}-nats`, role: "nats", cell: name }, servers.nats);
    this.parts = [servers.database, bus, ...services.conductors, ...services.agents];
  }

  /**
   * Resolves when the cell's two servers run; `startServices` follows once the databases are prepared. When it rejects, `openings` contains
   * the servers to close.
   */
  static async open(
    name: string,
    options: LocalCellOptions & { readonly dir: string; readonly databaseDir: string; readonly openings: Openings },
    links: Links,
  ): Promise<LocalCell> {
    const dir = join(options.dir, name);
    const { openings } = options;
    const [database, nats] = await Promise.all([
      openings.add(
        DatabaseServer.open({
          ...{ name: `${name}-postgres`, cell: name, dir: join(options.databaseDir, name) },
          database: options.database,
        }),
        (one) => one.close(),
      ),
      openings.add(startLocalNats({ cells: [name], writeConfig: natsConfig, dir: join(dir, "nats") }), (one) =>
        one.kill(),
      ),
    ]);
    await ensureDatabase(database.url("postgres"), "cell");
    const portsFor = async (from: LinkEnd): Promise<ServerPorts> => ({
      postgres: await links.open(from, database, () => database.port),
      nats: await links.open(from, { name: `${name}-nats`, role: "nats", cell: name }, () => nats.port),
    });
    const make = { name, dir, options, links, database, nats };
    const conductors: LocalConductor[] = [];
    for (const id of idsOf(`${name}-conductor`, options.conductors)) {
      conductors.push(conductorOf(make, id, await portsFor({ name: id, role: "conductor", cell: name })));
    }
    const agents: LocalAgent[] = [];
    for (const id of idsOf(`${name}-agent`, options.agents)) agents.push(await agentOf(make, id, conductors));
    return new LocalCell(name, { database, nats }, { conductors, agents }, await portsFor(ABOVE));
  }

  /** True URL of the cell's database, for observers. */
  get databaseUrl(): string {
    return this.database.url("cell");
  }

  /** The addresses of this cell that the API tier gets. */
  get addressesForAbove(): { readonly databaseUrl: string; readonly natsUrl: string } {
    return {
      databaseUrl: atPort(this.databaseUrl, this.#above.postgres()),
      natsUrl: atPort(this.nats.cellApiUrl(this.name), this.#above.nats()),
    };
  }

  /** Number of hosts of the cell's agents. */
  get hostCount(): number {
    return this.agents.reduce((sum, agent) => sum + agent.hosts.length, 0);
  }

  async startServices(): Promise<void> {
    await Promise.all(this.conductors.map((conductor) => conductor.start()));
    await Promise.all(this.agents.map((agent) => agent.start()));
  }

  async close(): Promise<void> {
    await Promise.all([...this.conductors, ...this.agents].map((one) => one.kill()));
    await Promise.all([this.database.close(), this.nats.kill()]);
  }
}

interface Making {
  readonly name: string;
  readonly dir: string;
  readonly options: LocalCellOptions;
  readonly links: Links;
  readonly database: DatabaseServer;
  readonly nats: LocalNats;
}

function conductorOf({ name, options, database, nats }: Making, id: string, ports: ServerPorts): LocalConductor {
  const conductor: LocalConductor = new LocalConductor({
    ...{ name: id, role: "conductor", cell: name, argv: ["conductor"] },
    berth: () => options.berth(id),
    env: () => ({
      ...options.env,
      ...options.conductorEnv,
      BERTH_CELL: name,
      BERTH_CELL_DATABASE_URL: atPort(database.url("cell"), ports.postgres()),
      BERTH_NATS_URL: atPort(nats.conductorUrl(name), ports.nats()),
      BERTH_LISTEN: `127.0.0.1:${conductor.port}`,
      BERTH_NAME: id,
    }),
  });
  return conductor;
}

async function agentOf(
  { name, dir, options, links }: Making,
  id: string,
  conductors: readonly LocalConductor[],
): Promise<LocalAgent> {
  const hosts = idsOf(`${id}-host`, options.hostsPerAgent).map((host) => hostOf(host, name, options.slotsPerHost));
  const hostsFile = join(dir, `${id}.json`);
  writeFileSync(hostsFile, JSON.stringify({ hosts }));
  const own = options.agentEnv?.(id) ?? {};
  const ports: (() => number)[] = [];
  for (const conductor of conductors) {
    ports.push(await links.open({ name: id, role: "agent", cell: name }, conductor, () => conductor.port));
  }
  return new LocalAgent({
    ...{ id, cell: name, hosts: hosts.map((host) => host.name), journal: join(dir, `${id}.journal`), hostsFile },
    berth: () => options.berth(id),
    env: () => ({
      ...options.env,
      ...own,
      BERTH_AGENT_ID: id,
      BERTH_CONDUCTORS: ports.map((port) => `127.0.0.1:${port()}`).join(","),
      ...(own.BERTH_DISCOVER === "true" ? {} : { BERTH_HOSTS_FILE: hostsFile }),
      BERTH_FAKE_BY_METADATA: "true",
      BERTH_DATA_DIR: dir,
    }),
  });
}

function hostOf(name: string, cell: string, slots: number): HostConfig {
  return {
    name,
    inventories: {
      VCPU: { total: 10_000 },
      MEMORY_MB: { total: 10_000_000 },
      DISK_GB: { total: 1_000_000 },
      CUSTOM_SLOT: { total: slots },
    },
    traits: [traitOf(cell)],
  };
}

export function traitOf(cell: string): string {
  return `CUSTOM_${cell.toUpperCase().replaceAll("-", "_")}`;
}

function idsOf(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index + 1}`);
}
