import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StreamSpec } from "../../runtime/bus.ts";
import { type ChildServer, startChildServer } from "../../runtime/child-server.ts";
import { systemClock } from "../../runtime/clock.ts";
import { freePort } from "../../runtime/free-port.ts";
import { retry } from "../../runtime/retry.ts";
import { managerOf } from "./ensure-streams.ts";
import type { LocalNatsLayout } from "./local-server.ts";
import { createNatsBus } from "./nats-bus.ts";
import { NatsLink } from "./nats-link.ts";
import { apiStreams, cellStreams, natsUserOfApi, natsUserOfApiIn, natsUserOfConductors } from "./streams.ts";

/** The configuration of one server of a cluster: that of `LocalNatsLayout`, and how the server finds the others. */
export interface LocalClusterLayout extends LocalNatsLayout {
  readonly cluster: {
    readonly server: string;
    readonly listen: string;
    readonly routes: readonly string[];
    readonly password: string;
  };
}

export interface LocalClusterOptions {
  readonly cells: readonly string[];
  /** Usually `natsConfig`. */
  readonly writeConfig: (layout: LocalClusterLayout) => string;
  /** The number of servers, 3 by default. Every stream has a copy on each of them, but at most 5 copies. */
  readonly servers?: number;
  /**
   * Directory for configurations and streams. A given directory is kept; otherwise a temporary one is made and removed with the servers.
   */
  readonly dir?: string;
}

/** Several nats-servers on 127.0.0.1 that keep copies of each other's streams. Its URLs name all of the servers. */
export interface LocalNatsCluster {
  readonly servers: readonly string[];
  readonly apiUrl: string;
  cellApiUrl(cell: string): string;
  conductorUrl(cell: string): string;
  /** The server that leads a stream at this moment. `url` is one of the above, of the API tier. Rejects while the stream has no leader. */
  leaderOf(url: string, stream: string): Promise<string>;
  /** Kills one of `servers`, as a crash would. */
  kill(server: string): Promise<void>;
  restart(server: string): Promise<void>;
  stop(): Promise<void>;
}

const PATIENT = { triesMax: 100, delayMs: 100, delayMsMax: 500 };
const CALL_MS = 2_000;
const STARTS_MAX = 5;

/** Starts the servers. Resolves when they have elected leaders and all streams exist. */
export async function startLocalNatsCluster(options: LocalClusterOptions): Promise<LocalNatsCluster> {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "berth-nats-"));
  const cluster = await Cluster.start(options, dir);
  try {
    await cluster.layOut(options.cells);
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

class Cluster implements LocalNatsCluster {
  readonly servers: readonly string[];
  readonly #dir: string;
  readonly #temporary: boolean;
  readonly #options: LocalClusterOptions;
  readonly #passwords = new Map<string, string>();
  readonly #ports: ReadonlyMap<string, { readonly client: number; readonly route: number }>;
  readonly #running = new Map<string, ChildServer>();

  private constructor(options: LocalClusterOptions, dir: string, ports: readonly number[]) {
    this.#options = options;
    this.#dir = dir;
    this.#temporary = options.dir === undefined;
    const count = ports.length / 2;
    this.servers = Array.from({ length: count }, (_, index) => `nats-${index + 1}`);
    this.#ports = new Map(
      this.servers.map((name, index) => [
        name,
        { client: ports[index] as number, route: ports[count + index] as number },
      ]),
    );
  }

  static async start(options: LocalClusterOptions, dir: string): Promise<Cluster> {
    for (let attempt = 1; ; attempt += 1) {
      const ports = await freePorts(2 * (options.servers ?? 3));
      const cluster = new Cluster(options, dir, ports);
      const started = await Promise.allSettled(cluster.servers.map((name) => cluster.restart(name)));
      const failed = started.find((one) => one.status === "rejected");
      if (failed === undefined) return cluster;
      await Promise.all(cluster.servers.map((name) => cluster.kill(name)));
      // Another process may have taken a port after it was found free and before a server bound it.
      if (attempt === STARTS_MAX || !/address already in use/i.test(String(failed.reason))) {
        await cluster.stop();
        throw failed.reason;
      }
    }
  }

  get apiUrl(): string {
    return this.#url(natsUserOfApi);
  }

  cellApiUrl(cell: string): string {
    return this.#url(natsUserOfApiIn(cell));
  }

  conductorUrl(cell: string): string {
    return this.#url(natsUserOfConductors(cell));
  }

  /** Retries until the servers have found each other. */
  async layOut(cells: readonly string[]): Promise<void> {
    await this.#ensure(this.apiUrl, apiStreams);
    for (const cell of cells) await this.#ensure(this.cellApiUrl(cell), cellStreams(cell));
  }

  async leaderOf(url: string, stream: string): Promise<string> {
    const link = new NatsLink({ url, name: "berth cluster", clock: systemClock, onEvent: () => undefined });
    try {
      const manager = await managerOf(await link.whenUp(CALL_MS), CALL_MS);
      const leader = (await manager.streams.info(stream)).cluster?.leader;
      if (leader === undefined) throw new Error(`stream ${stream} has no leader`);
      return leader;
    } finally {
      await link.close();
    }
  }

  async kill(server: string): Promise<void> {
    await this.#running.get(server)?.kill();
    this.#running.delete(server);
  }

  async restart(server: string): Promise<void> {
    const ports = this.#ports.get(server);
    if (ports === undefined) throw new Error(`the cluster has no server ${server}`);
    const home = join(this.#dir, server);
    mkdirSync(home, { recursive: true });
    const configFile = join(home, "nats.conf");
    writeFileSync(configFile, this.#options.writeConfig(this.#layoutOf(server, home)), { mode: 0o600 });
    const child = await startChildServer({
      command: "nats-server",
      answer: "INFO ",
      port: ports.client,
      args: () => ["-c", configFile],
    });
    this.#running.set(server, child);
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((name) => this.kill(name)));
    if (this.#temporary) rmSync(this.#dir, { recursive: true, force: true });
  }

  async #ensure(url: string, specs: readonly StreamSpec[]): Promise<void> {
    const bus = createNatsBus({ url, name: "berth cluster", timeoutMs: CALL_MS });
    try {
      await retry(() => bus.ensureStreams(specs), PATIENT);
    } finally {
      await bus.close();
    }
  }

  #layoutOf(server: string, home: string): LocalClusterLayout {
    const ports = [...this.#ports.values()];
    return {
      apiPassword: this.#passwordOf(natsUserOfApi),
      cells: this.#options.cells.map((name) => ({
        name,
        apiPassword: this.#passwordOf(natsUserOfApiIn(name)),
        conductorPassword: this.#passwordOf(natsUserOfConductors(name)),
      })),
      storeDir: join(home, "streams"),
      host: "127.0.0.1",
      port: this.#ports.get(server)?.client ?? 0,
      cluster: {
        server,
        listen: `127.0.0.1:${this.#ports.get(server)?.route}`,
        routes: ports.map(({ route }) => `127.0.0.1:${route}`),
        password: this.#passwordOf("route"),
      },
    };
  }

  #passwordOf(user: string): string {
    const known = this.#passwords.get(user) ?? randomBytes(16).toString("hex");
    this.#passwords.set(user, known);
    return known;
  }

  #url(user: string): string {
    const hosts = [...this.#ports.values()].map(
      ({ client }) => `nats://${user}:${this.#passwordOf(user)}@127.0.0.1:${client}`,
    );
    return `${hosts.join(",")}?replicas=${this.servers.length}`;
  }
}

/** Returns distinct ports. A port that was found free is not taken yet, so the next search may find it again. */
async function freePorts(count: number): Promise<readonly number[]> {
  const found = new Set<number>();
  for (let tries = 0; found.size < count && tries < 100 * count; tries += 1) found.add(await freePort());
  return [...found];
}
