import { join } from "node:path";
import { readCellRecords } from "../../../adapters/postgres/api/cell-records.ts";
import { PostgresCellArbiter } from "../../../adapters/postgres/api/postgres-cell-arbiter.ts";
import { ensureDatabase } from "../../../adapters/postgres/client/databases.ts";
import { endPool } from "../../../adapters/postgres/client/end-pool.ts";
import { openLoggedPool } from "../../../adapters/postgres/client/logged-pool.ts";
import { createPool } from "../../../adapters/postgres/client/pool.ts";
import { isUnavailable } from "../../../adapters/postgres/client/run-stored.ts";
import { startEmbedded } from "../../../adapters/postgres/embedded/embedded.ts";
import { settingsErrorIfInUse } from "../../../adapters/postgres/embedded/embedded-error.ts";
import { followerEvents, registerFollowerMetrics } from "../../../adapters/postgres/follower/follower-telemetry.ts";
import { LedgerFollower } from "../../../adapters/postgres/follower/ledger-follower.ts";
import { migrate } from "../../../adapters/postgres/schema/migrate.ts";
import { createRegistry } from "../../../adapters/telemetry/metrics.ts";
import { LedgerView } from "../../../core/ledger/ledger-view.ts";
import type { CellArbiter } from "../../../core/stores/api/cell-arbiter.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { type ProcessPort, runService, type ServiceContext } from "../../../runtime/lifecycle.ts";
import type { Logger } from "../../../runtime/logger.ts";
import { Patience } from "../../../runtime/patience.ts";
import type { Service } from "../../../runtime/service.ts";
import { refuseBadAuth } from "../identity/refuse-bad-auth.ts";
import { openMetrics } from "../open-metrics.ts";
import { WaitingRoom } from "../waiting-room.ts";
import { openAccess } from "./open-access.ts";
import { placementCell } from "./placement-cell.ts";
import { createPlacement, type PlacementService } from "./service.ts";
import { type PlacementOptions, placementDeclaration, placementSettings } from "./settings.ts";

/** `berth api --only placement`: from settings to exit code. */
export function runOnlyPlacement(host: ProcessPort, argv: readonly string[]): Promise<number> {
  return runService(host, {
    name: "placement",
    argv,
    declaration: placementDeclaration,
    create: composePlacement,
    readyNote: (service) => {
      const { host: address, port } = (service as PlacementService).address;
      return `http://${address}:${port}`;
    },
  });
}

interface LedgerDatabase {
  readonly cell: string;
  readonly url: string;
}

/** Functions that close the opened resources, to be called in reverse order. */
type Closers = (() => Promise<unknown>)[];

async function composePlacement({ settings, logger }: ServiceContext<PlacementOptions>): Promise<Service> {
  refuseBadAuth(settings);
  const closers: Closers = [];
  const closeAll = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    const patience = new Patience({ logger, isTransient: isUnavailable });
    const { listen } = settings;
    const room = new WaitingRoom({ listen, waitingFor: () => patience.waitingFor, isPlacement: () => true });
    closers.push(() => room.close());
    await room.open();
    const databases = await findDatabases(settings, patience, closers);
    const access = await openAccess(settings, logger);
    closers.push(() => access.close());
    const registry = createRegistry({ service: "placement" });
    const opened = databases.map((database) => openCell(database, logger, closers));
    registerFollowerMetrics(registry, opened);
    const [first, ...others] = opened;
    if (first === undefined) throw new Error("the API database names no cell; add one with `berth cell add NAME`");
    const service = createPlacement(
      {
        cells: [first.cell, ...others.map((one) => one.cell)],
        ...access,
        arbiter: openArbiter(settings.databaseUrl, logger, closers),
        logger,
        registry: null,
        beforeListening: () => room.close(),
      },
      placementSettings(settings),
    );
    const metrics = openMetrics(settings.metricsListen, registry, logger);
    closers.push(() => metrics.close());
    closers.push(() => service.close());
    const start = async () => {
      await metrics.start();
      await service.start();
    };
    return Object.defineProperty({ start, close: closeAll }, "address", {
      get: () => service.address,
    });
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Returns the databases to serve: the one in the settings, those in the API database, or the embedded one. */
async function findDatabases(
  settings: PlacementOptions,
  patience: Patience,
  closers: Closers,
): Promise<readonly LedgerDatabase[]> {
  const { databaseUrl, cellDatabaseUrl } = settings;
  if (databaseUrl !== null) {
    const cells = await patience.until("the API database", () => readCellRecords(databaseUrl));
    return cells.filter((cell) => !cell.disabled).map((cell) => ({ cell: cell.name, url: cell.databaseUrl }));
  }
  if (cellDatabaseUrl !== null) {
    await patience.until("the ledger's database", () => migrate(cellDatabaseUrl, "cell"));
    return [{ cell: "placement", url: cellDatabaseUrl }];
  }
  const server = await startEmbedded({ dataDir: join(settings.dataDir, "postgres") }).catch((error: unknown) => {
    throw settingsErrorIfInUse(error);
  });
  closers.push(() => server.stop());
  await ensureDatabase(server.url("postgres"), "berth_placement");
  const url = server.localUrl("berth_placement");
  await migrate(url, "cell");
  return [{ cell: "placement", url }];
}

/** Opens the arbiter when there is an API database, because other processes may then serve the same cells. */
function openArbiter(databaseUrl: string | null, logger: Logger, closers: Closers): CellArbiter | null {
  if (databaseUrl === null) return null;
  const about = { applicationName: "berth placement", what: "API database", connectionsMax: 4 };
  const pool = openLoggedPool({ url: databaseUrl, ...about, logger });
  closers.push(() => endPool(pool));
  return new PostgresCellArbiter(pool);
}

function openCell(database: LedgerDatabase, logger: Logger, closers: Closers) {
  const pool = createPool({
    url: database.url,
    applicationName: "berth placement",
    connectionsMax: 16,
    onConnectionLost: (error) =>
      logger.warn(
        { err: error, cell: database.cell },
        "a connection to the cell's database was lost; the pool opens another one when it is needed",
      ),
  });
  closers.push(() => endPool(pool));
  const view = new LedgerView();
  const follower = new LedgerFollower({
    cell: database.cell,
    databaseUrl: database.url,
    view,
    clock: systemClock,
    events: followerEvents(logger),
  });
  closers.push(() => follower.close());
  follower.start();
  return { cell: placementCell(database.cell, pool, view, follower), view, follower };
}
