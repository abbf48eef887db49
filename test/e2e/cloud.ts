import { join } from "node:path";
import { onTestFailed } from "vitest";
import { type LocalNats, startLocalNats } from "../../adapters/nats/local-server.ts";
import { ensureDatabase } from "../../adapters/postgres/databases.ts";
import { type EmbeddedPostgres, startEmbedded } from "../../adapters/postgres/embedded.ts";
import { type LocalRedis, startLocalRedis } from "../../adapters/redis/local-server.ts";
import { isClean } from "../../cli/audit/audit-report.ts";
import { auditTwice } from "../../cli/audit/audit-twice.ts";
import { conductorSettingNames } from "../../cli/audit/conductor-setting-names.ts";
import { auditText } from "../../cli/audit/print-report.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { eventually } from "../eventually.ts";
import { type CellOptions, E2eCell, type Environment, POSTGRES_OPTIONS } from "./cell.ts";
import { ComputeApi } from "./client.ts";
import { makeScratchDir, type ScratchDir } from "./scratch-dir.ts";
import { ServiceProcess } from "./service-process.ts";

export interface CloudOptions extends Partial<CellOptions> {
  readonly cells?: readonly string[];
  readonly schedulers?: number;
}

const DEFAULTS: CellOptions = {
  conductors: 2,
  agents: 2,
  hostsPerAgent: 3,
  slotsPerHost: 1_000,
  env: {},
  conductorEnv: {},
};
const LOG_LINES = 25;
const PATIENT = { everyMs: 250, withinMs: 60_000 };

/** What is above the cells: an api, schedulers, and their servers. */
interface Tier {
  readonly postgres: EmbeddedPostgres;
  readonly nats: LocalNats;
  readonly redis: LocalRedis;
}

/**
 * A whole cloud of separate processes: api, schedulers, and cells of conductors and agents; a Postgres server and a
 * nats-server of its own for the API tier and for each cell, and a Redis.
 */
export class Cloud {
  readonly cells: readonly E2eCell[];
  readonly api: ServiceProcess;
  readonly schedulers: readonly ServiceProcess[];
  readonly compute: ComputeApi;
  readonly nats: LocalNats;
  readonly redis: LocalRedis;
  #postgres: EmbeddedPostgres;
  readonly #dir: ScratchDir;
  readonly #env: Environment;
  #apiUrl = "";
  #serversAboveRun = true;

  private constructor(
    tier: Tier,
    cells: readonly E2eCell[],
    options: { dir: ScratchDir; env: Environment; schedulers: number },
  ) {
    this.cells = cells;
    this.#postgres = tier.postgres;
    this.nats = tier.nats;
    this.redis = tier.redis;
    this.#dir = options.dir;
    this.#env = options.env;
    this.compute = new ComputeApi(() => this.#apiUrl);
    this.api = this.#service("api", "api", { BERTH_LISTEN: "127.0.0.1:0", BERTH_REDIS_URL: tier.redis.url });
    this.schedulers = Array.from({ length: options.schedulers }, (_, index) =>
      this.#service(`scheduler ${index + 1}`, "scheduler", { BERTH_REDIS_URL: tier.redis.url }),
    );
  }

  /** Serves, with all hosts up, when it resolves. Nothing is left when it rejects. */
  static async start(options: CloudOptions = {}): Promise<Cloud> {
    const dir = makeScratchDir();
    // What one process has compiled the others need not.
    const env = { ...options.env, NODE_COMPILE_CACHE: join(dir.path, "compiled") };
    const cellOptions = { ...DEFAULTS, ...options, env, dir: dir.path };
    const [tier, ...cells] = await Promise.all([
      startTier(dir.path),
      ...(options.cells ?? ["cell-1", "cell-2"]).map((name) => E2eCell.open(name, cellOptions)),
    ]);
    const cloud = new Cloud(tier, cells, { dir, env, schedulers: options.schedulers ?? 2 });
    try {
      await cloud.#addCells();
      const above = [cloud.startApi(), ...cloud.schedulers.map((scheduler) => scheduler.start())];
      await Promise.all([...above, ...cells.map((cell) => cell.startServices())]);
      await cloud.makeWhole();
      return cloud;
    } catch (error) {
      await cloud.close();
      throw error;
    }
  }

  /** Base of the api, without a path; another one after it was started again. */
  get apiUrl(): string {
    return this.#apiUrl;
  }

  get databaseUrl(): string {
    return this.#postgres.url("api");
  }

  /** The cell of this name. */
  cell(name: string): E2eCell {
    const found = this.cells.find((cell) => cell.name === name);
    if (found === undefined) throw new Error(`no cell ${name}`);
    return found;
  }

  processes(): readonly ServiceProcess[] {
    return [this.api, ...this.schedulers, ...this.cells.flatMap((cell) => cell.processes())];
  }

  async startApi(): Promise<void> {
    this.#apiUrl = await this.api.start();
  }

  /** Everything above the cells ends at once, as when its data centre loses power. */
  async killAbove(): Promise<void> {
    this.#serversAboveRun = false;
    await Promise.all([
      ...[this.api, ...this.schedulers].map((one) => one.kill()),
      this.nats.kill(),
      this.redis.kill(),
      this.#postgres.stop(),
    ]);
  }

  /** Starts what is missing and waits until all serve and all hosts are up: what one test broke the next must not meet. */
  async makeWhole(): Promise<void> {
    if (!this.#serversAboveRun) await this.#restartServersAbove();
    await Promise.all([
      this.api.running ? null : this.startApi(),
      ...this.schedulers.map((scheduler) => (scheduler.running ? null : scheduler.start())),
      ...this.cells.map((cell) => cell.makeWhole()),
    ]);
  }

  /** For `beforeEach`: a cloud without faults, and the logs of all processes when the test fails. */
  async beforeTest(): Promise<void> {
    for (const one of this.processes()) one.mark();
    onTestFailed(() => this.printLogs());
    await this.makeWhole();
  }

  /** Waits until nothing is in flight any more and the audit of the five laws, guests included, finds nothing. */
  async expectCleanAudit(): Promise<void> {
    let last = "";
    const clean = async () => {
      const guests = await Promise.all(this.cells.map((cell) => cell.runningGuests()));
      const report = await auditTwice({
        apiUrl: this.databaseUrl,
        cells: this.cells.map(({ name, databaseUrl }, index) => ({
          name,
          databaseUrl,
          runningGuests: () => guests[index] ?? new Map(),
        })),
        pauseMs: 0,
        patienceMs: 0,
        conductorSettings: conductorSettingNames,
      });
      last = auditText(report);
      return isClean(report);
    };
    await eventually("a clean audit", clean, PATIENT).catch((error: Error) => {
      throw new Error(`${error.message}: ${last}`);
    });
  }

  printLogs(): void {
    for (const one of this.processes()) {
      const log = one.logSinceMark(LOG_LINES);
      if (log !== "") process.stderr.write(`--- ${one.name}\n${log}\n`);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.api, ...this.schedulers].map((one) => one.kill()));
    await Promise.all([
      ...this.cells.map((cell) => cell.close()),
      this.#postgres.stop(),
      this.nats.kill(),
      this.redis.stop(),
    ]);
    await this.#dir.remove();
  }

  async #restartServersAbove(): Promise<void> {
    [this.#postgres] = await Promise.all([
      startEmbedded({ ...POSTGRES_OPTIONS, dataDir: this.#postgres.dataDir }),
      this.nats.restart(),
      this.redis.restart(),
    ]);
    this.#serversAboveRun = true;
  }

  /** As an operator does it. */
  async #addCells(): Promise<void> {
    const add = (cell: E2eCell) =>
      this.#service(`cell add ${cell.name}`, `cell add ${cell.name}`, {
        BERTH_CELL_DATABASE_URL: cell.databaseUrl,
        BERTH_NATS_URL: cell.nats.cellApiUrl(cell.name),
      }).run();
    await Promise.all(this.cells.map(add));
  }

  #service(name: string, command: string, env: Environment): ServiceProcess {
    return new ServiceProcess({
      name,
      argv: command.split(" "),
      env: () => ({
        ...this.#env,
        BERTH_DATABASE_URL: this.databaseUrl,
        BERTH_NATS_URL: this.nats.apiUrl,
        ...env,
      }),
    });
  }
}

async function startTier(dir: string): Promise<Tier> {
  const [postgres, nats, redis] = await Promise.all([
    startEmbedded({ ...POSTGRES_OPTIONS, dataDir: join(dir, "above", "postgres") }),
    startLocalNats({ cells: [], writeConfig: natsConfig, dir: join(dir, "above", "nats") }),
    startLocalRedis(),
  ]);
  await ensureDatabase(postgres.url("postgres"), "api");
  return { postgres, nats, redis };
}
