import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { withClient } from "../../adapters/postgres/client/databases.ts";
import type { AuditReport } from "../../audit/audit-report.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import { conductorSettingNames } from "../../audit/conductor-setting-names.ts";
import { readGuests } from "../../audit/read-guests.ts";
import { CannotHarmError, type ChaosCloud, type Death, isServer, type Link, type Part } from "../chaos-cloud.ts";
import type { CloudShape } from "../plan.ts";
import { ChildServerPart } from "./child-server-part.ts";
import { DatabaseServer } from "./database-server.ts";
import type { Environment } from "./local-cell.ts";
import { LocalCloud } from "./local-cloud.ts";
import { LocalService } from "./local-service.ts";
import { SupervisedPart } from "./supervised-part.ts";

const LOG_LINES = 40;
const LAST_LINES = 2;
const LAST_CHARS = 600;
const HOSTS_UP_MS_MAX = 120_000;
const LOOK_MS = 100;
/** Bytes that a full disk still accepts, so that a write ends in the middle of a line. */
const LAST_BYTES = 20;

/** A local cloud that faults are injected into. Parts that end by themselves are started again, as by a supervisor. */
export class LocalTarget implements ChaosCloud {
  readonly target = "local";
  readonly cells: readonly string[];
  readonly parts: readonly Part[];
  readonly links: readonly Link[];
  readonly #cloud: LocalCloud;
  readonly #supervised: readonly SupervisedPart[];
  readonly #deaths: Death[] = [];
  readonly #full = new Set<string>();

  private constructor(cloud: LocalCloud) {
    this.#cloud = cloud;
    this.cells = cloud.cells.map(({ name }) => name);
    this.links = cloud.links.all;
    this.#supervised = cloud.parts.map(
      (part) =>
        new SupervisedPart(part, {
          died: () => this.#deaths.push({ part: part.name, isServer: isServer(part), words: lastWords(part) }),
          started: () => (this.#full.has(part.name) ? this.#limit(part.name, true) : undefined),
        }),
    );
    this.parts = this.#supervised;
  }

  /** `env` are settings for all services. Resolves when the cloud serves and all hosts are up. When it rejects, nothing is left running. */
  static async start(shape: CloudShape, options: { readonly env?: Environment } = {}): Promise<LocalTarget> {
    const cloud = await LocalCloud.start({
      cells: Array.from({ length: shape.cells }, (_, index) => `cell${index + 1}`),
      apis: shape.apis,
      schedulers: shape.schedulers,
      conductors: shape.conductors,
      agents: shape.agents,
      hostsPerAgent: shape.hosts,
      proxied: true,
      ...options,
    });
    try {
      if (shape.standbys) await Promise.all(cloud.cells.map(({ database }) => database.restoreStandby()));
      const target = new LocalTarget(cloud);
      await target.makeWhole();
      return target;
    } catch (error) {
      await cloud.close();
      throw error;
    }
  }

  get apiUrls(): readonly string[] {
    return this.#cloud.apiUrls;
  }

  async flushRedis(): Promise<void> {
    const client = new Redis(this.#cloud.redis.url, {
      lazyConnect: true,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
    });
    client.on("error", () => undefined); // `connect` reports the error.
    try {
      await client.connect();
      await client.flushall();
    } finally {
      client.disconnect();
    }
  }

  async failover(cell: string): Promise<void> {
    const { database } = this.#cell(cell);
    if (!database.hasStandby) throw new CannotHarmError(`${database.name} has no standby now`);
    await database.failover();
  }

  async restoreStandby(cell: string): Promise<void> {
    await this.#cell(cell).database.restoreStandby();
  }

  /**
   * Limits the size of the process' files, which needs no special rights. The write that would exceed the limit is cut short and fails, as
   * on a full disk.
   */
  async fillDisk(part: string): Promise<void> {
    this.#limit(part, true);
    this.#full.add(part);
  }

  async freeDisk(part: string): Promise<void> {
    this.#full.delete(part);
    this.#limit(part, false);
  }

  async makeWhole(): Promise<void> {
    await Promise.all(this.links.map((link) => link.heal()));
    for (const agent of [...this.#full]) await this.freeDisk(agent);
    await Promise.all(this.#supervised.map(async (part) => (part.running ? part.resume() : undefined)));
    for (const part of this.#supervised.filter(isServer)) await part.startAgain();
    await Promise.all(this.#supervised.map((part) => part.startAgain()));
    const deadline = performance.now() + HOSTS_UP_MS_MAX;
    for (const cell of this.#cloud.cells) {
      const count = "select count(*)::int as up from hosts where up";
      for (;;) {
        const [row] = await withClient(cell.databaseUrl, async (db) => (await db.query<{ up: number }>(count)).rows);
        if (row?.up === cell.hostCount) break;
        if (performance.now() > deadline) {
          throw new Error(
            `only ${row?.up} of ${cell.hostCount} hosts of ${cell.name} came up within ${HOSTS_UP_MS_MAX} ms`,
          );
        }
        await delay(LOOK_MS);
      }
    }
  }

  audit(options: { readonly pauseMs: number; readonly patienceMs: number }): Promise<AuditReport> {
    const agents = this.#cloud.cells.flatMap((cell) => cell.agents.flatMap(({ probes }) => probes ?? []));
    return auditTwice({
      apiUrl: this.#cloud.databaseUrl,
      cells: this.#cloud.cells.map(({ name, databaseUrl }) => ({ name, databaseUrl })),
      readGuests: () => readGuests({ agents, journals: [] }),
      conductorSettings: conductorSettingNames,
      ...options,
    });
  }

  async holders(): Promise<readonly string[]> {
    const query = "select distinct consumer_uuid::text as uuid from allocations";
    const found = await Promise.all(
      this.#cloud.cells.map((cell) =>
        withClient(cell.databaseUrl, async (client) => (await client.query<{ uuid: string }>(query)).rows),
      ),
    );
    return found.flat().map(({ uuid }) => uuid);
  }

  deaths(): readonly Death[] {
    return this.#deaths;
  }

  async logs(): Promise<readonly { readonly part: string; readonly text: string }[]> {
    return this.#cloud.services
      .map((service) => ({ part: service.name, text: service.logSinceMark(LOG_LINES) }))
      .filter(({ text }) => text !== "");
  }

  async close(): Promise<void> {
    for (const part of this.#supervised) part.release();
    await this.#cloud.close();
  }

  #cell(name: string) {
    const found = this.#cloud.cells.find((cell) => cell.name === name);
    if (found === undefined) throw new Error(`this cloud has no cell ${name}`);
    return found;
  }

  #limit(name: string, full: boolean): void {
    const agent = this.#cloud.cells.flatMap(({ agents }) => agents).find((one) => one.name === name);
    const server = this.#cloud.parts.find((one) => one.name === name && one.role === "nats");
    const part = agent ?? (server instanceof ChildServerPart ? server : undefined);
    if (part === undefined) throw new CannotHarmError(`${name} is neither an agent nor a NATS server`);
    if (!part.running) return;
    const lastByte = agent === undefined ? 0 : statSync(agent.journal).size + LAST_BYTES;
    const bytes = full ? `${lastByte}` : "unlimited";
    const { status, error, stderr } = spawnSync("prlimit", ["--pid", `${part.pid}`, `--fsize=${bytes}:`]);
    if (status !== 0) throw new CannotHarmError(`prlimit: ${error?.message ?? stderr}`);
  }
}

/** How the part ended, and what it logged before. */
function lastWords(part: Part): string {
  const isServerPart = part instanceof ChildServerPart || part instanceof DatabaseServer;
  const words = part instanceof LocalService ? part.logSinceMark(LAST_LINES) : isServerPart ? part.lastWords : "";
  return words.replaceAll("\n", " ").slice(-LAST_CHARS);
}
