import { onTestFailed } from "vitest";
import type { LocalNats } from "../../adapters/nats/local-server.ts";
import { LocalCloud, type LocalCloudOptions } from "../../chaos/local/local-cloud.ts";
import type { LocalService } from "../../chaos/local/local-service.ts";
import { E2eCell } from "./cell.ts";
import { expectCleanAudit } from "./clean-audit.ts";
import { ComputeApi } from "./client.ts";

const LOG_LINES = 25;

/** A whole cloud of separate processes, with a client and access to its databases. */
export class Cloud {
  readonly cells: readonly E2eCell[];
  readonly api: LocalService;
  readonly schedulers: readonly LocalService[];
  readonly compute: ComputeApi;
  readonly nats: LocalNats;
  readonly #local: LocalCloud;

  private constructor(local: LocalCloud) {
    const [api] = local.apis;
    if (api === undefined) throw new Error("no api");
    this.#local = local;
    this.cells = local.cells.map((cell) => new E2eCell(cell));
    this.api = api;
    this.schedulers = local.schedulers;
    this.nats = local.nats;
    this.compute = new ComputeApi(() => this.apiUrl);
  }

  /** When it resolves, the cloud is ready and all hosts are up. When it rejects, nothing is left running. */
  static async start(options: Partial<LocalCloudOptions> = {}): Promise<Cloud> {
    const cloud = new Cloud(await LocalCloud.start({ cells: ["cell-1", "cell-2"], ...options }));
    try {
      await cloud.makeWhole();
      return cloud;
    } catch (error) {
      await cloud.close();
      throw error;
    }
  }

  /** The api's base URL without a path. It changes when the api is restarted. */
  get apiUrl(): string {
    return this.#local.apiUrls[0] ?? "";
  }

  get databaseUrl(): string {
    return this.#local.databaseUrl;
  }

  /** The server of the API database. */
  get database(): LocalCloud["database"] {
    return this.#local.database;
  }

  get redis(): LocalCloud["redis"] {
    return this.#local.redis;
  }

  /** Berth's own processes. */
  get services(): readonly LocalService[] {
    return this.#local.services;
  }

  /** The cell of this name. */
  cell(name: string): E2eCell {
    const found = this.cells.find((cell) => cell.name === name);
    if (found === undefined) throw new Error(`no cell ${name}`);
    return found;
  }

  /** Kills everything above the cells at once, like a power failure of its data centre. */
  async killAbove(): Promise<void> {
    const above = this.#local.parts.filter(({ cell }) => cell === null);
    await Promise.all(above.map((part) => part.kill()));
  }

  /** Starts missing processes and waits until all are ready and all hosts are up, so that no test sees the damage of another one. */
  async makeWhole(): Promise<void> {
    await this.#local.startMissing();
    await Promise.all(this.cells.map((cell) => cell.hostsUp()));
  }

  /** For `beforeEach`: repairs the cloud, and prints the logs of all processes when the test fails. */
  async beforeTest(): Promise<void> {
    for (const one of this.#local.services) one.mark();
    onTestFailed(() => this.printLogs());
    await this.makeWhole();
  }

  /** Waits until nothing is in progress and the audit of the six laws, guests included, finds nothing. */
  async expectCleanAudit(): Promise<void> {
    await expectCleanAudit(async () => {
      const guests = await Promise.all(this.cells.map((cell) => cell.runningGuests()));
      const cells = this.cells.map((cell, index) => ({
        name: cell.name,
        databaseUrl: cell.databaseUrl,
        runningGuests: () => guests[index] ?? new Map(),
        copies: () => cell.copies(),
      }));
      return { apiUrl: this.databaseUrl, cells };
    });
  }

  printLogs(): void {
    for (const one of this.#local.services) {
      const log = one.logSinceMark(LOG_LINES);
      if (log !== "") process.stderr.write(`--- ${one.name}\n${log}\n`);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.cells.map((cell) => cell.close()));
    await this.#local.close();
  }
}
