import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import type { DatabaseServer } from "../../chaos/local/database-server.ts";
import { LocalCloud } from "../../chaos/local/local-cloud.ts";
import { OWN_BERTH } from "../../chaos/local/service-process.ts";
import { ComputeClient } from "../../replay/compute-client.ts";
import { PoolSender } from "../../replay/pool-sender.ts";
import { type CpuProfile, type FoldedStacks, foldProfile } from "./cpu-profile.ts";
import { InspectorClient } from "./inspector-client.ts";
import { endedChildrenMs, threadsCpuMs, type Usage, usageOf } from "./process-usage.ts";
import {
  COUNTING_SETTINGS,
  prepareCounting,
  type StatementCount,
  startCounting,
  stopCounting,
} from "./statement-counts.ts";

const HOSTS = 200;
const CONNECTIONS = 64;
const LIMIT_MS = 300_000;
const POLL_MS = 200;
/** The application of this bench's own connections, which are left out of the figures. */
const OWN = "bench";
const FLAVOR = { id: "m1", vcpus: 1, memoryMib: 64, extraSpecs: {} };

/** The name of the threads on which V8 compiles functions that are called often. It collects garbage there, too, but little. */
const V8_WORKERS = "node-V8Worker";
/** What these threads take is told apart from the rest of a role, since it ends when all functions that are called often are compiled. */
export const COMPILERS = "V8's compilers";

/** The usage of each part of the cloud, by the part's role: `api`, `scheduler`, `cell postgres: berth view stream` … */
export type UsageByPart = ReadonlyMap<string, Usage>;

/** A cloud of separate processes under measurement: an api, a scheduler, and a cell with a conductor and an agent of 200 hosts. */
export class MeasuredCloud {
  readonly #cloud: LocalCloud;
  #client: ComputeClient;
  readonly #servers: readonly MeasuredServer[];

  private constructor(cloud: LocalCloud, client: ComputeClient, servers: readonly MeasuredServer[]) {
    this.#cloud = cloud;
    this.#client = client;
    this.#servers = servers;
  }

  /** Starts the cloud from the tree with this `bin/berth`, and resolves when all hosts are up. `env` is for all its services. */
  static async start(berth = OWN_BERTH, env: Readonly<Record<string, string>> = {}): Promise<MeasuredCloud> {
    const cloud = await LocalCloud.start({
      ...{ cells: ["cell-1"], apis: 1, schedulers: 1, conductors: 1, agents: 1, hostsPerAgent: HOSTS },
      database: { durable: true, settings: { ...COUNTING_SETTINGS, shared_buffers: "128MB" } },
      env: { NODE_OPTIONS: "--inspect=127.0.0.1:0", ...env },
      berth: () => berth,
    });
    const client = clientOf(cloud);
    const servers = await openServers(cloud).catch(async (error) => {
      await cloud.close();
      throw error;
    });
    const measured = new MeasuredCloud(cloud, client, servers);
    try {
      for (const { database } of measured.#servers) await prepareCounting(database.url("postgres"));
      await measured.#until("all hosts are up", "select count(*) = $1::int as done from hosts where up", HOSTS);
      await client.createFlavor(FLAVOR);
      await measured.#firstBoot();
      return measured;
    } catch (error) {
      await measured.close();
      throw error;
    }
  }

  /** The database of the cell. */
  get databaseUrl(): string {
    return this.#cloud.cells[0]!.databaseUrl;
  }

  get apiDatabaseUrl(): string {
    return this.#cloud.databaseUrl;
  }

  /**
   * Starts the api and the scheduler again, which load their views, and resolves when they have served a boot. For databases that were filled
   * by SQL that announces nothing.
   */
  async startTierAgain(): Promise<void> {
    await this.#client.close();
    await Promise.all([...this.#cloud.apis, ...this.#cloud.schedulers].map((service) => service.replace()));
    this.#client = clientOf(this.#cloud);
    await this.#firstBoot();
  }

  /** Requests one server and resolves with its UUID once it is accepted. */
  boot(metadata: Readonly<Record<string, string>> = {}): Promise<string> {
    return this.#client.createServer({ name: "anatomy", flavorId: FLAVOR.id, metadata });
  }

  delete(uuid: string): Promise<void> {
    return this.#client.deleteServer(uuid);
  }

  /**
   * Boots this many servers over 64 connections, waits until all are ACTIVE, and deletes them the same way until all are gone.
   */
  async bootAndDelete(servers: number): Promise<void> {
    const uuids = await inParallel(Array.from({ length: servers }), () => this.boot());
    await this.untilActive(uuids);
    await inParallel(uuids, (uuid) => this.delete(uuid));
    await this.untilGone(uuids);
  }

  async untilActive(uuids: readonly string[]): Promise<void> {
    const active =
      "select count(*) = cardinality($1::uuid[]) as done from servers where uuid = any ($1) and status = 'ACTIVE'";
    await this.#until(`${uuids.length} servers are ACTIVE`, active, uuids);
  }

  /** Waits until these servers are deleted and no task is open. */
  async untilGone(uuids: readonly string[]): Promise<void> {
    const gone = `select not exists (select from servers where uuid = any ($1::uuid[]) and status <> 'DELETED')
      and not exists (select from tasks where outcome is null) as done`;
    await this.#until("all servers are gone", gone, uuids);
  }

  /** The usage of each part since it started. Processes of Postgres are told apart by the application that they serve. */
  async usage(): Promise<UsageByPart> {
    const parts = new Map<string, Usage>();
    const add = (part: string, used: Usage | null): void => {
      if (used !== null) parts.set(part, sumOf(parts.get(part), used));
    };
    for (const { role, pid } of this.#cloud.services) {
      const used = usageOf(pid);
      if (used === null) continue;
      const compilersMs = threadsCpuMs(pid, V8_WORKERS);
      add(role, { ...used, cpuMs: used.cpuMs - compilersMs });
      add(`${role}: ${COMPILERS}`, { cpuMs: compilersMs, wakeUps: 0, writes: 0, writtenBytes: 0 });
    }
    add("nats of the api tier", usageOf(this.#cloud.nats.pid));
    add("redis", usageOf(this.#cloud.redis.pid));
    for (const cell of this.#cloud.cells) add("nats of the cell", usageOf(cell.nats.pid));
    for (const { name, database, client } of this.#servers) {
      for (const { pid, application } of await backendsOf(client)) add(`${name}: ${application}`, usageOf(pid));
      const ended = { cpuMs: endedChildrenMs(database.pid), wakeUps: 0, writes: 0, writtenBytes: 0 };
      add(`${name}: processes that ended`, ended);
    }
    add("client", usageOf(process.pid));
    return parts;
  }

  /** The stacks of all Node processes while `work` runs, by their roles. */
  async profile(work: () => Promise<void>): Promise<FoldedStacks> {
    const clients = await Promise.all(
      this.#cloud.services.map(async (service) => {
        const url = /ws:\/\/\S+/.exec(service.logSinceMark(Number.MAX_SAFE_INTEGER))?.[0];
        if (url === undefined) throw new Error(`${service.name} printed no address of its inspector`);
        return { role: service.role, inspector: await InspectorClient.connect(url) };
      }),
    );
    try {
      for (const { inspector } of clients) await inspector.startProfile();
      await work();
      const stacks = new Map<string, number>();
      for (const { role, inspector } of clients) addProfile(stacks, role, await inspector.stopProfile());
      return stacks;
    } finally {
      for (const { inspector } of clients) inspector.close();
    }
  }

  /** The statements of each server while `work` runs. */
  async countStatements(work: () => Promise<void>): Promise<ReadonlyMap<string, readonly StatementCount[]>> {
    for (const { database } of this.#servers) await startCounting(database.url("postgres"));
    await work();
    const counts = new Map<string, readonly StatementCount[]>();
    for (const { name, database } of this.#servers) counts.set(name, await stopCounting(database.url("postgres")));
    return counts;
  }

  async close(): Promise<void> {
    await this.#client.close();
    for (const { client } of this.#servers) client.release();
    await Promise.all(this.#servers.map(({ pool }) => pool.end()));
    await this.#cloud.close();
  }

  /** The first boots may wait for a view that is still loading, so they are no part of a measurement. */
  async #firstBoot(): Promise<void> {
    await this.bootAndDelete(1);
  }

  async #until(what: string, sql: string, value: number | readonly string[]): Promise<void> {
    const deadline = performance.now() + LIMIT_MS;
    const cell = this.#servers.at(-1)!.client;
    for (;;) {
      const { rows } = await cell.query<{ done: boolean }>(sql, [value]);
      if (rows[0]?.done === true) return;
      if (performance.now() > deadline) throw new Error(`not reached within ${LIMIT_MS} ms: ${what}`);
      await delay(POLL_MS);
    }
  }
}

interface MeasuredServer {
  readonly name: string;
  readonly database: DatabaseServer;
  readonly pool: Pool;
  /**
   * This connection is held all the time, since a pool closes idle connections, and a new one would cost the measured
   * server CPU.
   */
  readonly client: PoolClient;
}

function clientOf(cloud: LocalCloud): ComputeClient {
  return new ComputeClient(new PoolSender({ apiUrl: cloud.apiUrls[0]!, connections: CONNECTIONS }));
}

function openServers({ cells, database, databaseUrl }: LocalCloud): Promise<readonly MeasuredServer[]> {
  return Promise.all([
    openServer("api postgres", database, databaseUrl),
    ...cells.map((cell) => openServer("cell postgres", cell.database, cell.databaseUrl)),
  ]);
}

async function openServer(name: string, database: DatabaseServer, url: string): Promise<MeasuredServer> {
  const pool = createPool({ url, applicationName: OWN, connectionsMax: 1 });
  return { name, database, pool, client: await pool.connect() };
}

/** The usage between two readings, for each unit of work. A part that began in between counts from its start. */
export function usedPer(units: number, before: UsageByPart, after: UsageByPart): UsageByPart {
  const per = (part: string, field: keyof Usage): number =>
    Math.max(0, after.get(part)![field] - (before.get(part)?.[field] ?? 0)) / units;
  return new Map(
    [...after.keys()].map((part) => [
      part,
      {
        ...{ cpuMs: per(part, "cpuMs"), wakeUps: per(part, "wakeUps") },
        ...{ writes: per(part, "writes"), writtenBytes: per(part, "writtenBytes") },
      },
    ]),
  );
}

/** Adds two usages. */
export function sumOf(one: Usage | undefined, other: Usage): Usage {
  if (one === undefined) return other;
  return {
    cpuMs: one.cpuMs + other.cpuMs,
    wakeUps: one.wakeUps + other.wakeUps,
    writes: one.writes + other.writes,
    writtenBytes: one.writtenBytes + other.writtenBytes,
  };
}

async function backendsOf(client: PoolClient): Promise<readonly { pid: number; application: string }[]> {
  const { rows } = await client.query<{ pid: number; application: string }>(
    `select pid, case when backend_type in ('client backend', 'walsender') then application_name else 'background' end
       as application
     from pg_stat_activity where application_name <> $1 and backend_type is not null`,
    [OWN],
  );
  return rows;
}

function addProfile(stacks: Map<string, number>, role: string, profile: CpuProfile): void {
  for (const [stack, ms] of foldProfile(role, profile)) stacks.set(stack, (stacks.get(stack) ?? 0) + ms);
}

async function inParallel<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const at = next;
      next += 1;
      results[at] = await work(items[at]!);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  return results;
}
