import { randomUUID } from "node:crypto";
import { createNatsBus } from "../../adapters/nats/nats-bus.ts";
import {
  followerEvents,
  registerFollowerMetrics,
  type WatchedFollower,
} from "../../adapters/postgres/follower/follower-telemetry.ts";
import { LedgerFollower } from "../../adapters/postgres/follower/ledger-follower.ts";
import { pendingMigrations } from "../../adapters/postgres/migrate.ts";
import { createPool } from "../../adapters/postgres/pool.ts";
import { PostgresApiStore } from "../../adapters/postgres/postgres-api-store.ts";
import { PostgresCellStore } from "../../adapters/postgres/postgres-cell-store.ts";
import { RedisSoftState } from "../../adapters/redis/redis-soft-state.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { startTracing } from "../../adapters/telemetry/tracing.ts";
import type { CellRecord } from "../../core/cell/api-store.ts";
import { LedgerView } from "../../core/ledger/view.ts";
import { systemClock } from "../../runtime/clock.ts";
import { closeOnce } from "../../runtime/close-once.ts";
import type { ServiceContext } from "../../runtime/lifecycle.ts";
import type { Logger } from "../../runtime/logger.ts";
import { createProbes } from "../../runtime/probes.ts";
import type { Service } from "../../runtime/service.ts";
import type { OpenedCell } from "./ports.ts";
import { createScheduler } from "./service.ts";
import { type SchedulerOptions, schedulerSettings } from "./settings.ts";

const NAME = "berth scheduler";
/** Batches of claims of one cell that are out at a time, closes and deletes beside them. */
const CELL_CONNECTIONS_MAX = 6;
const API_CONNECTIONS_MAX = 6;
const BUS_UP_MS = 15_000;

/** A scheduler on the real parts, with its probes; it owns them all. */
export interface SchedulerProcess extends Service {
  /** Where the probes are; after `start`. */
  readonly note: string;
}

/** Connects in the background; everything else begins with `start`. */
export function openScheduler(
  { settings: options, logger }: ServiceContext<SchedulerOptions>,
  otlpEndpoint: string | null,
): SchedulerProcess {
  const settings = schedulerSettings(options, randomUUID());
  const pool = openPool(options.databaseUrl, "API database", API_CONNECTIONS_MAX, logger);
  const store = new PostgresApiStore(pool);
  const bus = openBus(options.natsUrl, "API tier", logger);
  const softState = new RedisSoftState({
    url: options.redisUrl,
    onLost: (reason) => logger.warn({ reason }, "Redis is away; schedulers do not know of each other meanwhile"),
    onBack: () => logger.info("Redis is back"),
  });
  const registry = createRegistry({ service: "scheduler" });
  const followers: WatchedFollower[] = [];
  registerFollowerMetrics(registry, followers);
  const tracing = startTracing({ service: "berth-scheduler", instance: settings.schedulerId, exportTo: otlpEndpoint });
  const openCell = async (record: CellRecord) => openSchedulerCell(record, followers, logger);
  const scheduler = createScheduler(
    { store, bus, cells: [], openCell, softState, clock: systemClock, logger, registry, tracing },
    settings,
  );
  const probes = createProbes({ listen: options.listen, registry, isReady: () => scheduler.ready });
  return {
    get note() {
      return `probes at ${probes.address.host}:${probes.address.port}`;
    },
    async start() {
      const pending = await pendingMigrations(pool, "api");
      if (pending.length > 0) throw new Error(`the API database lacks ${pending.join(", ")}; run \`berth db migrate\``);
      await probes.start();
      await bus.whenConnected(BUS_UP_MS);
      await scheduler.start();
    },
    close: closeOnce(async () => {
      await scheduler.close();
      await Promise.all([probes.close(), bus.close(), softState.close(), tracing.close()]);
      await store.close();
    }),
  };
}

/** Opens a cell in the background: it takes part once its view has loaded. Throws when its record is incomplete. */
function openSchedulerCell(record: CellRecord, followers: WatchedFollower[], logger: Logger): OpenedCell {
  const { name, databaseUrl, natsUrl } = record;
  if (natsUrl === null) throw new Error(`cell ${name} has no NATS URL`);
  const pool = openPool(databaseUrl, `cell ${name}`, CELL_CONNECTIONS_MAX, logger);
  const bus = openBus(natsUrl, `cell ${name}`, logger);
  const view = new LedgerView();
  const clock = systemClock;
  const follower = new LedgerFollower({ cell: name, databaseUrl, view, clock, events: followerEvents(logger) });
  const watched = { follower, view };
  followers.push(watched);
  follower.start();
  return {
    name,
    store: new PostgresCellStore(pool),
    bus,
    view,
    source: follower,
    async close() {
      followers.splice(followers.indexOf(watched), 1);
      await Promise.all([follower.close(), bus.close()]);
      await pool.end();
    },
  };
}

function openPool(url: string, what: string, connectionsMax: number, logger: Logger) {
  return createPool({
    url,
    applicationName: NAME,
    connectionsMax,
    onConnectionLost: (error) => logger.warn({ err: error, database: what }, "database connection lost"),
  });
}

function openBus(url: string, what: string, logger: Logger) {
  return createNatsBus({
    url,
    name: NAME,
    onEvent: (event) => logger.info({ bus: what, event }, "bus connection"),
  });
}
