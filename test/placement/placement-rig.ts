import { pino } from "pino";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { LedgerFollower } from "../../adapters/postgres/follower/ledger-follower.ts";
import { PostgresLedger } from "../../adapters/postgres/ledger/postgres-ledger.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import type { LedgerDump } from "../../core/ledger/ledger-dump.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import { systemClock } from "../../runtime/clock.ts";
import { authenticateNoauth2 } from "../../services/api/placement/identity.ts";
import { placementCell } from "../../services/api/placement/placement-cell.ts";
import { legacyDefaults } from "../../services/api/placement/placement-rules.ts";
import { createPlacement, type PlacementCell, type PlacementService } from "../../services/api/placement/service.ts";
import { DEFAULT_PLACEMENT_SETTINGS, type PlacementSettings } from "../../services/api/placement/settings.ts";
import { Policy } from "../../services/api/policy/policy.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { PlacementClient } from "./placement-client.ts";

const CONNECTIONS_MAX = 16;

interface RigCell {
  readonly name: string;
  readonly database: TestDatabase;
  readonly pool: ReturnType<typeof createPool>;
  readonly follower: LedgerFollower;
  readonly ledger: PostgresLedger;
  readonly served: PlacementCell;
}

export interface RigOptions {
  /** The cells are named `cell1`, `cell2` and so on. One by default. */
  readonly cells?: number;
  readonly settings?: Partial<PlacementSettings>;
  /** Returns the URL to which the service connects instead of the database's, for example a relay that can be cut. */
  readonly via?: (databaseUrl: string) => Promise<string>;
}

/** The Placement API in this process, over the databases of one or several cells. */
export class PlacementRig {
  readonly url: string;
  readonly client: PlacementClient;
  /** The parsed log lines. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  readonly #cells: readonly RigCell[];
  readonly #service: PlacementService;

  private constructor(service: PlacementService, cells: readonly RigCell[], log: Readonly<Record<string, unknown>>[]) {
    this.url = `http://${service.address.host}:${service.address.port}`;
    this.client = new PlacementClient(this.url);
    this.log = log;
    this.#cells = cells;
    this.#service = service;
  }

  static async start({ cells: count = 1, settings = {}, via = async (url) => url }: RigOptions = {}) {
    const cells = await Promise.all(Array.from({ length: count }, (_, at) => openCell(`cell${at + 1}`, via)));
    const [first, ...others] = cells.map((cell) => cell.served);
    const log: Readonly<Record<string, unknown>>[] = [];
    const deps = {
      cells: [first!, ...others] as const,
      authenticate: authenticateNoauth2,
      policy: new Policy(legacyDefaults()),
      cors: null,
      arbiter: null,
      logger: pino(
        { level: "debug", formatters: { level: (label) => ({ level: label }) } },
        { write: (line: string) => void log.push(JSON.parse(line)) },
      ),
      registry: createRegistry({ service: "placement", withProcess: false }),
    };
    const service = createPlacement(deps, { ...DEFAULT_PLACEMENT_SETTINGS, ...settings });
    await service.start();
    return new PlacementRig(service, cells, log);
  }

  /** The whole content of a cell's ledger. */
  dump(cell = 0): Promise<LedgerDump> {
    return this.#cells[cell]!.ledger.dump();
  }

  databaseUrl(cell = 0): string {
    return this.#cells[cell]!.database.url;
  }

  /** Every resource class and trait of the first cell. */
  async names(): Promise<readonly string[]> {
    const { rows } = await this.#cells[0]!.pool.query<{ name: string }>(
      "select name from resource_classes union all select name from traits order by 1",
    );
    return rows.map((row) => row.name);
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.#service.close();
    await Promise.all(
      this.#cells.map(async (cell) => {
        await cell.follower.close();
        await cell.pool.end();
        await cell.database.drop();
      }),
    );
  }
}

async function openCell(name: string, via: (databaseUrl: string) => Promise<string>): Promise<RigCell> {
  const database = await freshDatabase("cell");
  const url = await via(database.url);
  const pool = createPool({ url, applicationName: "placement test", connectionsMax: CONNECTIONS_MAX });
  const view = new LedgerView();
  const follower = new LedgerFollower({
    cell: name,
    databaseUrl: url,
    view,
    clock: systemClock,
    events: { loaded: () => {}, lost: () => {} },
  });
  follower.start();
  const ledger = new PostgresLedger(pool);
  return { name, database, pool, follower, ledger, served: placementCell(name, pool, view, follower) };
}
