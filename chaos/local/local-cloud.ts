import { join } from "node:path";
import { type LocalNats, startLocalNats } from "../../adapters/nats/local-server.ts";
import { ensureDatabase } from "../../adapters/postgres/client/databases.ts";
import { type LocalRedis, startLocalRedis } from "../../adapters/redis/local-server.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { memoryDir } from "../../runtime/memory-dir.ts";
import { isServer, type LinkEnd, type Part } from "../chaos-cloud.ts";
import { ChildServerPart } from "./child-server-part.ts";
import { type DatabaseOptions, DatabaseServer } from "./database-server.ts";
import { atPort, Links } from "./links.ts";
import { type Environment, LocalCell, type LocalCellOptions } from "./local-cell.ts";
import { LocalService } from "./local-service.ts";
import { Openings } from "./openings.ts";
import { makeScratchDir, type ScratchDir } from "./scratch-dir.ts";
import { quickestBerth, ServiceProcess } from "./service-process.ts";

export interface LocalCloudOptions extends Partial<LocalCellOptions> {
  readonly cells: readonly string[];
  readonly apis?: number;
  readonly schedulers?: number;
  /** Whether there is a proxy in front of each link, so that the link can be cut. */
  readonly proxied?: boolean;
}

const DEFAULTS: LocalCellOptions = {
  conductors: 2,
  agents: 2,
  hostsPerAgent: 3,
  slotsPerHost: 1_000,
  env: {},
  conductorEnv: {},
  database: {},
  berth: quickestBerth,
};

/** The servers of the API tier. */
interface Tier {
  readonly database: DatabaseServer;
  readonly nats: LocalNats;
  readonly redis: LocalRedis;
}

/**
 * A whole cloud of separate processes on this machine: apis, schedulers, and cells of conductors and agents. The API tier and each cell
 * have their own Postgres server and nats-server, and there is one Redis. The cloud ends with this process, however this process ends.
 */
export class LocalCloud {
  readonly cells: readonly LocalCell[];
  readonly apis: readonly LocalService[];
  readonly schedulers: readonly LocalService[];
  readonly database: DatabaseServer;
  readonly nats: LocalNats;
  readonly redis: LocalRedis;
  readonly links: Links;
  readonly parts: readonly Part[];
  readonly #removeDirs: () => Promise<void>;
  readonly #env: Environment;
  readonly #berth: LocalCellOptions["berth"];
  readonly #apiPorts: number[] = [];
  #clientPorts: readonly (() => number)[] = [];

  private constructor(
    tier: Tier,
    cells: readonly LocalCell[],
    links: Links,
    made: {
      readonly removeDirs: () => Promise<void>;
      readonly env: Environment;
      readonly berth: LocalCellOptions["berth"];
    },
    ports: readonly TierPorts[],
  ) {
    this.cells = cells;
    this.database = tier.database;
    this.nats = tier.nats;
    this.redis = tier.redis;
    this.links = links;
    this.#removeDirs = made.removeDirs;
    this.#env = made.env;
    this.#berth = made.berth;
    const services = ports.map((own) => this.#service(own));
    this.apis = services.filter(({ role }) => role === "api");
    this.schedulers = services.filter(({ role }) => role === "scheduler");
    this.parts = [
      tier.database,
      new ChildServerPart({ name: "nats", role: "nats", cell: null }, tier.nats),
      new ChildServerPart({ name: "redis", role: "redis", cell: null }, tier.redis),
      ...services,
      ...cells.flatMap((cell) => cell.parts),
    ];
  }

  /** Resolves when all services serve; hosts may still be coming up. When it rejects, nothing is left running. */
  static async start(options: LocalCloudOptions): Promise<LocalCloud> {
    const dir = makeScratchDir();
    const databaseDir = makeDatabaseDir(options.database ?? {});
    const removeDirs = async () => void (await Promise.all([dir.remove(), databaseDir.remove()]));
    // Shares compiled code, so that each file is compiled by only one process.
    const compiled = process.env.NODE_COMPILE_CACHE ?? join(dir.path, "compiled");
    const env = { ...options.env, NODE_COMPILE_CACHE: compiled };
    const links = new Links(options.proxied ?? false);
    const openings = new Openings();
    const cellOptions = { ...DEFAULTS, ...options, env, dir: dir.path, databaseDir: databaseDir.path, openings };
    const tierOpening = startTier(cellOptions);
    const cellsOpening = options.cells.map((name) => LocalCell.open(name, cellOptions, links));
    const [tier, cells] = await Promise.all([tierOpening, Promise.all(cellsOpening)]).catch(async (error) => {
      // The others may still be starting, with servers and links to close.
      await Promise.allSettled([tierOpening, ...cellsOpening]);
      await openings.undo();
      await links.close();
      await removeDirs();
      throw error;
    });
    const ports = await openTierLinks(links, tier, { apis: options.apis ?? 1, schedulers: options.schedulers ?? 2 });
    const cloud = new LocalCloud(tier, cells, links, { removeDirs, env, berth: cellOptions.berth }, ports);
    try {
      await cloud.#begin();
      return cloud;
    } catch (error) {
      await cloud.close();
      throw error;
    }
  }

  /** Base URLs of all apis as clients reach them, without a path. Without proxies they change when an api is started again. */
  get apiUrls(): readonly string[] {
    return this.#clientPorts.map((port) => `http://127.0.0.1:${port()}`);
  }

  /** True URL of the API database, for observers. */
  get databaseUrl(): string {
    return this.database.url("api");
  }

  /** Berth's own processes. */
  get services(): readonly LocalService[] {
    return [...this.apis, ...this.schedulers, ...this.cells.flatMap((cell) => [...cell.conductors, ...cell.agents])];
  }

  /** Starts the parts that do not run, servers before the services that use them. */
  async startMissing(): Promise<void> {
    const missing = this.parts.filter((part) => !part.running);
    const [servers, services] = [missing.filter(isServer), missing.filter((part) => !isServer(part))];
    await Promise.all(servers.map((part) => part.start()));
    await Promise.all(services.map((part) => part.start()));
  }

  async close(): Promise<void> {
    await Promise.all([...this.apis, ...this.schedulers].map((one) => one.kill()));
    await Promise.all([closeAll(this.cells), closeTier(this)]);
    await this.links.close();
    await this.#removeDirs();
  }

  async #begin(): Promise<void> {
    this.#clientPorts = await Promise.all(
      this.apis.map((api, index) =>
        this.links.open({ name: "clients", role: "clients", cell: null }, api, () => this.#apiPorts[index] ?? 0),
      ),
    );
    await Promise.all(this.cells.map((cell) => this.#add(cell)));
    await Promise.all([
      ...[...this.apis, ...this.schedulers].map((one) => one.start()),
      ...this.cells.map((cell) => cell.startServices()),
    ]);
  }

  /** Adds the cell with `berth cell add`, as an operator does. */
  #add(cell: LocalCell): Promise<void> {
    const { databaseUrl, natsUrl } = cell.addressesForAbove;
    return new ServiceProcess({
      name: `cell add ${cell.name}`,
      berth: () => this.#berth(`cell add ${cell.name}`),
      argv: ["cell", "add", cell.name],
      env: () => ({
        ...this.#env,
        BERTH_DATABASE_URL: this.databaseUrl,
        BERTH_CELL_DATABASE_URL: databaseUrl,
        BERTH_NATS_URL: natsUrl,
      }),
    }).run();
  }

  #service({ end, postgres, nats, redis }: TierPorts): LocalService {
    const { role, name } = end;
    const env = () => ({
      ...this.#env,
      BERTH_DATABASE_URL: atPort(this.databaseUrl, postgres()),
      BERTH_NATS_URL: atPort(this.nats.apiUrl, nats()),
      BERTH_REDIS_URL: atPort(this.redis.url, redis()),
      BERTH_LISTEN: "127.0.0.1:0",
    });
    const spec = { name, role, cell: null, argv: [role], env, berth: () => this.#berth(name) };
    if (role !== "api") return new LocalService(spec);
    const at = this.#apiPorts.push(0) - 1;
    return new ApiProcess(spec, (port) => {
      this.#apiPorts[at] = port;
    });
  }
}

/** An api's process, which prints its address after each start. */
class ApiProcess extends LocalService {
  readonly #tell: (port: number) => void;

  constructor(spec: ConstructorParameters<typeof LocalService>[0], tell: (port: number) => void) {
    super(spec);
    this.#tell = tell;
  }

  override async start(): Promise<string> {
    const note = await super.start();
    this.#tell(Number(new URL(note).port));
    return note;
  }
}

/** The ports under which one service of the API tier reaches the tier's servers. */
interface TierPorts {
  readonly end: LinkEnd & { readonly role: "api" | "scheduler" };
  readonly postgres: () => number;
  readonly nats: () => number;
  readonly redis: () => number;
}

function openTierLinks(
  links: Links,
  tier: Tier,
  counts: { readonly apis: number; readonly schedulers: number },
): Promise<readonly TierPorts[]> {
  const ends = (role: "api" | "scheduler", count: number) =>
    Array.from({ length: count }, (_, index) => ({ name: `${role}-${index + 1}`, role, cell: null }));
  const server = (role: "nats" | "redis") => ({ name: role, role, cell: null });
  return Promise.all(
    [...ends("api", counts.apis), ...ends("scheduler", counts.schedulers)].map(async (end) => ({
      end,
      postgres: await links.open(end, tier.database, () => tier.database.port),
      nats: await links.open(end, server("nats"), () => tier.nats.port),
      redis: await links.open(end, server("redis"), () => tier.redis.port),
    })),
  );
}

/** The directory of the databases: in memory, where writing files takes half the CPU time, unless they are to be durable. */
function makeDatabaseDir({ durable = false }: DatabaseOptions): ScratchDir {
  return makeScratchDir((durable ? null : memoryDir()) ?? undefined);
}

async function startTier({
  dir,
  databaseDir,
  database: options,
  openings,
}: Parameters<typeof LocalCell.open>[1]): Promise<Tier> {
  const at = { name: "postgres", cell: null, dir: join(databaseDir, "above") };
  const [database, nats, redis] = await Promise.all([
    openings.add(DatabaseServer.open({ ...at, database: options }), (one) => one.close()),
    openings.add(startLocalNats({ cells: [], writeConfig: natsConfig, dir: join(dir, "above/nats") }), (one) =>
      one.kill(),
    ),
    openings.add(startLocalRedis(), (one) => one.stop()),
  ]);
  await ensureDatabase(database.url("postgres"), "api");
  return { database, nats, redis };
}

async function closeTier({ database, nats, redis }: Tier): Promise<void> {
  await Promise.all([database.close(), nats.kill(), redis.kill().then(() => redis.stop())]);
}

async function closeAll(cells: readonly LocalCell[]): Promise<void> {
  await Promise.all(cells.map((cell) => cell.close()));
}
