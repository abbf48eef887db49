import { join } from "node:path";
import {
  type EmbeddedOptions,
  type EmbeddedPostgres,
  startEmbedded,
} from "../../adapters/postgres/embedded/embedded.ts";
import { promoteStandby, startStandby } from "../../adapters/postgres/embedded/embedded-standby.ts";
import type { Part } from "../chaos-cloud.ts";

/** Small, and without durability unless a measurement needs it: nothing here outlives the cloud. */
const SMALL = { shared_buffers: "32MB", max_connections: "120" };

export type DatabaseOptions = Pick<EmbeddedOptions, "durable" | "settings">;

/** A Postgres server of a local cloud, with or without a synchronous standby. */
export class DatabaseServer implements Part {
  readonly role = "postgres";
  readonly name: string;
  readonly cell: string | null;
  readonly #dir: string;
  readonly #options: DatabaseOptions;
  #serving: EmbeddedPostgres;
  #standby: EmbeddedPostgres | null = null;
  #standbys = 0;
  #running = true;
  /** How the server last ended by itself. */
  lastWords = "";
  /** The start under way. */
  #starting: Promise<unknown> = Promise.resolve();

  private constructor(
    options: { name: string; cell: string | null; dir: string },
    database: DatabaseOptions,
    serving: EmbeddedPostgres,
  ) {
    this.#options = database;
    this.name = options.name;
    this.cell = options.cell;
    this.#dir = options.dir;
    this.#serving = serving;
    this.#watch();
  }

  static async open(options: {
    readonly name: string;
    readonly cell: string | null;
    readonly dir: string;
    readonly database?: DatabaseOptions;
  }): Promise<DatabaseServer> {
    const database = { durable: false, ...options.database, settings: { ...SMALL, ...options.database?.settings } };
    const serving = await startEmbedded({ ...database, dataDir: join(options.dir, "postgres") });
    return new DatabaseServer(options, database, serving);
  }

  get running(): boolean {
    return this.#running;
  }

  /** Process id of the server that serves. */
  get pid(): number {
    return this.#serving.pid;
  }

  /** Port of the server that serves; it changes with a failover. */
  get port(): number {
    return this.#serving.port;
  }

  /** URL of a database of the server that serves now. */
  url(database: string): string {
    return this.#serving.url(database);
  }

  async kill(): Promise<void> {
    this.#running = false;
    await this.#serving.kill();
  }

  /** Stops the server with SIGINT, as a careful operator does. */
  async stop(): Promise<void> {
    this.#running = false;
    await this.#serving.stop();
  }

  async start(): Promise<void> {
    const starting = startEmbedded({ ...this.#options, dataDir: this.#serving.dataDir });
    this.#starting = starting;
    this.#serving = await starting;
    this.#running = true;
    this.#watch();
  }

  async pause(): Promise<void> {
    this.#serving.pause();
  }

  async resume(): Promise<void> {
    this.#serving.resume();
  }

  /** Whether a standby could take over now. */
  get hasStandby(): boolean {
    return this.#standby !== null;
  }

  /**
   * Starts a synchronous standby, so that from now on a commit is answered only when the standby has it, too. Does nothing if there is one
   * already.
   */
  async restoreStandby(): Promise<void> {
    if (this.#standby !== null) return;
    this.#standbys += 1;
    const dataDir = join(this.#dir, `standby-${this.#standbys}`);
    const starting = startStandby(this.#serving, { ...this.#options, dataDir, synchronous: true });
    this.#starting = starting;
    this.#standby = await starting;
  }

  /** The server dies for good and its standby serves instead. Throws when there is no standby. */
  async failover(): Promise<void> {
    const next = this.#standby;
    if (next === null) throw new Error(`${this.name} has no standby`);
    // The part counts as running all the while; otherwise a supervisor would start the old server beside the new one.
    await this.#serving.kill();
    await promoteStandby(next);
    this.#serving = next;
    this.#standby = null;
    this.#watch();
  }

  #watch(): void {
    const serving = this.#serving;
    void serving.died.then((how) => {
      if (serving !== this.#serving) return;
      this.#running = false;
      this.lastWords = how;
    });
  }

  async close(): Promise<void> {
    this.#running = false;
    // A run that is broken off does not wait for a start under way, but that server must not outlive this process.
    await this.#starting.catch(() => undefined);
    // No data has to be kept, and a paused server would not stop by itself in time.
    await Promise.all([this.#serving.quit(), this.#standby?.quit()]);
  }
}
