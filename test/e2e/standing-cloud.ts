import { join } from "node:path";
import { type LocalNatsCluster, startLocalNatsCluster } from "../../adapters/nats/local-cluster.ts";
import { ensureDatabase } from "../../adapters/postgres/client/databases.ts";
import { type EmbeddedPostgres, startEmbedded } from "../../adapters/postgres/embedded/embedded.ts";
import { promoteStandby, startStandby } from "../../adapters/postgres/embedded/embedded-standby.ts";
import { type LocalRedis, startLocalRedis } from "../../adapters/redis/local-server.ts";
import { LocalAgent } from "../../chaos/local/local-agent.ts";
import { LocalConductor } from "../../chaos/local/local-conductor.ts";
import { copiesOf, runningGuests } from "../../chaos/local/running-guests.ts";
import { makeScratchDir, type ScratchDir } from "../../chaos/local/scratch-dir.ts";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import type { RunningGuest } from "../../core/audit/facts.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { eventually } from "../rigs/eventually.ts";
import { expectCleanAudit } from "./clean-audit.ts";
import { ComputeApi } from "./client.ts";

export const CELL = "cell-1";
const POSTGRES = { durable: false, settings: { shared_buffers: "32MB", max_connections: "120" } };
const AGENTS = 2;
const HOSTS_PER_AGENT = 10;
const PATIENT = { everyMs: 250, withinMs: 60_000 };

interface Servers {
  readonly nats: LocalNatsCluster;
  readonly redis: LocalRedis;
  readonly above: EmbeddedPostgres;
  readonly primary: EmbeddedPostgres;
  readonly standby: EmbeddedPostgres;
}

/**
 * A cloud of separate processes without a single point of failure among its servers: three nats-servers with three copies of each stream,
 * and a cell whose Postgres has a synchronous standby. One URL names both servers of the cell.
 */
export class StandingCloud {
  readonly nats: LocalNatsCluster;
  readonly compute: ComputeApi;
  /** Names both servers of the cell. */
  readonly cellUrl: string;
  readonly #servers: Servers;
  readonly #dir: ScratchDir;
  readonly #services: ServiceProcess[] = [];
  readonly #agents: LocalAgent[] = [];
  #apiUrl = "";

  private constructor(servers: Servers, dir: ScratchDir) {
    this.#servers = servers;
    this.nats = servers.nats;
    this.#dir = dir;
    this.cellUrl = bothOf(servers.primary, servers.standby);
    this.compute = new ComputeApi(() => this.#apiUrl);
  }

  /** When it resolves, the cloud is ready and all hosts are up. */
  static async start(): Promise<StandingCloud> {
    const dir = makeScratchDir();
    const cloud = new StandingCloud(await startServers(dir.path), dir);
    try {
      await cloud.#startServices();
      return cloud;
    } catch (error) {
      cloud.printLogs();
      await cloud.close();
      throw error;
    }
  }

  /** Kills the cell's primary for good. No standby is promoted yet. */
  killPrimary(): Promise<void> {
    return this.#servers.primary.kill();
  }

  promote(): Promise<void> {
    return promoteStandby(this.#servers.standby);
  }

  /** The running guests on the hosts, as the agents report them. */
  async guests(): Promise<readonly RunningGuest[]> {
    return [...(await runningGuests(this.#agents)).values()].flat();
  }

  /** Waits until nothing is in progress and the audit of the six laws, guests included, finds nothing. */
  async expectCleanAudit(): Promise<void> {
    await expectCleanAudit(async () => {
      const running = await runningGuests(this.#agents);
      const cell = {
        name: CELL,
        databaseUrl: this.cellUrl,
        runningGuests: () => running,
        copies: () => copiesOf(this.#agents),
      };
      return { apiUrl: this.#servers.above.url("api"), cells: [cell] };
    });
  }

  printLogs(): void {
    for (const one of this.#services) process.stderr.write(`--- ${one.name}\n${one.logSinceMark(40)}\n`);
  }

  async close(): Promise<void> {
    await Promise.all(this.#services.map((one) => one.kill()));
    const { nats, redis, above, primary, standby } = this.#servers;
    await Promise.all([nats.stop(), redis.stop(), above.quit(), primary.quit(), standby.quit()]);
    await this.#dir.remove();
  }

  async #startServices(): Promise<void> {
    const env = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(this.#dir.path, "compiled") };
    const above = { ...env, BERTH_DATABASE_URL: this.#servers.above.url("api"), BERTH_NATS_URL: this.nats.apiUrl };
    const added = { ...above, BERTH_CELL_DATABASE_URL: this.cellUrl, BERTH_NATS_URL: this.nats.cellApiUrl(CELL) };
    await this.#service("cell add", ["cell", "add", CELL], added).run();
    const tier = { ...above, BERTH_REDIS_URL: this.#servers.redis.url, BERTH_LISTEN: "127.0.0.1:0" };
    const api = this.#service("api", ["api"], tier);
    const schedulers = [1, 2].map((index) => this.#service(`scheduler ${index}`, ["scheduler"], tier));
    const conductors = [1, 2].map((index) => this.#conductor(`conductor ${index}`, env));
    const [url] = await Promise.all([
      api.start(),
      ...schedulers.map((one) => one.start()),
      ...conductors.map((one) => one.start()),
    ]);
    this.#apiUrl = url;
    const addresses = conductors.map(({ port }) => `127.0.0.1:${port}`).join(",");
    for (let index = 1; index <= AGENTS; index += 1) this.#agents.push(this.#agent(`agent-${index}`, env, addresses));
    await Promise.all(this.#agents.map((agent) => agent.start()));
    const up = async () => {
      const answer = await this.compute.call("GET", "/os-hypervisors/detail");
      const { hypervisors } = (await answer.json()) as { readonly hypervisors: readonly { readonly state: string }[] };
      return hypervisors.filter(({ state }) => state === "up").length === AGENTS * HOSTS_PER_AGENT;
    };
    await eventually("all hosts to be up", up, PATIENT);
  }

  #service(name: string, argv: readonly string[], env: Readonly<Record<string, string>>): ServiceProcess {
    const service = new ServiceProcess({ name, argv, env: () => env });
    this.#services.push(service);
    return service;
  }

  #conductor(name: string, env: Readonly<Record<string, string>>): LocalConductor {
    const own = {
      ...env,
      BERTH_CELL: CELL,
      BERTH_CELL_DATABASE_URL: this.cellUrl,
      BERTH_NATS_URL: this.nats.conductorUrl(CELL),
      BERTH_LISTEN: "127.0.0.1:0",
    };
    const conductor = new LocalConductor({
      name,
      role: "conductor",
      cell: CELL,
      argv: ["conductor"],
      env: () => own,
    });
    this.#services.push(conductor);
    return conductor;
  }

  #agent(id: string, env: Readonly<Record<string, string>>, conductors: string): LocalAgent {
    const own = {
      ...env,
      BERTH_AGENT_ID: id,
      BERTH_HOSTS: `${HOSTS_PER_AGENT}`,
      BERTH_FAKE_BY_METADATA: "true",
      BERTH_CONDUCTORS: conductors,
      BERTH_DATA_DIR: join(this.#dir.path, id),
    };
    const hosts = Array.from({ length: HOSTS_PER_AGENT }, (_, index) => `${id}-${index + 1}`);
    const agent = new LocalAgent({ id, cell: CELL, hosts, journal: own.BERTH_DATA_DIR, env: () => own });
    this.#services.push(agent);
    return agent;
  }
}

async function startServers(dir: string): Promise<Servers> {
  const [nats, redis, above, primary] = await Promise.all([
    startLocalNatsCluster({ cells: [CELL], writeConfig: natsConfig, dir: join(dir, "nats") }),
    startLocalRedis(),
    startEmbedded({ ...POSTGRES, dataDir: join(dir, "above") }),
    startEmbedded({ ...POSTGRES, dataDir: join(dir, "primary") }),
  ]);
  await Promise.all([ensureDatabase(above.url("postgres"), "api"), ensureDatabase(primary.url("postgres"), "cell")]);
  const standby = await startStandby(primary, { ...POSTGRES, dataDir: join(dir, "standby"), synchronous: true });
  return { nats, redis, above, primary, standby };
}

/** One URL for both servers, in libpq's notation. */
function bothOf(primary: EmbeddedPostgres, standby: EmbeddedPostgres): string {
  const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`;
  return `${primary.url("cell").replace(`127.0.0.1:${primary.port}`, hosts)}?target_session_attrs=read-write`;
}
