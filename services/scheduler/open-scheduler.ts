import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import { loadHostFilters } from "../../adapters/modules/load-host-filters.ts";
import { openLoggedBus } from "../../adapters/nats/logged-bus.ts";
import type { NatsBus } from "../../adapters/nats/nats-bus.ts";
import { PostgresAggregateStore } from "../../adapters/postgres/api/postgres-aggregate-store.ts";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresDecisionStore } from "../../adapters/postgres/api/postgres-decision-store.ts";
import { PostgresMoveStore } from "../../adapters/postgres/api/postgres-move-store.ts";
import { PostgresReservationStore } from "../../adapters/postgres/api/postgres-reservation-store.ts";
import { PostgresServerGroupStore } from "../../adapters/postgres/api/postgres-server-group-store.ts";
import { PostgresSettingsStore } from "../../adapters/postgres/api/postgres-settings-store.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { endPool } from "../../adapters/postgres/client/end-pool.ts";
import { openLoggedPool } from "../../adapters/postgres/client/logged-pool.ts";
import { isUnavailable } from "../../adapters/postgres/client/run-stored.ts";
import {
  describeObstacles,
  followerEvents,
  registerFollowerMetrics,
  type WatchedFollower,
} from "../../adapters/postgres/follower/follower-telemetry.ts";
import { LedgerFollower } from "../../adapters/postgres/follower/ledger-follower.ts";
import { describeUnready } from "../../adapters/postgres/schema/migrate.ts";
import { RedisSoftState } from "../../adapters/redis/redis-soft-state.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { startTracing } from "../../adapters/telemetry/start-tracing.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import { LiveCellFacts, viewWithFacts } from "../../core/scheduling/live-cell-facts.ts";
import type { CellRecord } from "../../core/stores/api/api-store.ts";
import type { StreamState } from "../../runtime/bus.ts";
import { systemClock } from "../../runtime/clock.ts";
import { closeOnce } from "../../runtime/close-once.ts";
import { drainThenCut } from "../../runtime/drain-then-cut.ts";
import type { ServiceContext } from "../../runtime/lifecycle.ts";
import type { Logger } from "../../runtime/logger.ts";
import { Patience } from "../../runtime/patience.ts";
import { createProbes } from "../../runtime/probes.ts";
import type { Service } from "../../runtime/service.ts";
import type { OpenedCell } from "./ports.ts";
import { createScheduler } from "./service.ts";
import { type SchedulerOptions, schedulerSettings } from "./settings.ts";

/** How long a stop waits for requests under way, since the servers that they wait for may be stopping as well. */
const DRAIN_MS = 2_000;
const NAME = "berth scheduler";
/** Database connections for one cell: room for the batches of claims that are written at a time, and for closes and deletes beside them. */
const CELL_CONNECTIONS_MAX = 6;
const API_CONNECTIONS_MAX = 6;

/** A scheduler on the real database, bus and soft state, with its probes. It owns all of them. */
export interface SchedulerProcess extends Service {
  /** Says where the probes listen; set after `start`. */
  readonly note: string;
}

/** Connects in the background; everything else begins with `start`. Throws a SettingsError when a filter cannot be loaded. */
export async function openScheduler(
  { settings: options, logger }: ServiceContext<SchedulerOptions>,
  exportTo: string | null,
): Promise<SchedulerProcess> {
  const filters = await loadHostFilters(options.filters ?? []);
  const settings = schedulerSettings(options, randomUUID());
  const pool = openLoggedPool({
    url: options.databaseUrl,
    applicationName: NAME,
    connectionsMax: API_CONNECTIONS_MAX,
    ...{ findsByKeys: true, what: "API database", logger },
  });
  const store = new PostgresApiStore(pool);
  const groups = new PostgresServerGroupStore(pool);
  const reservations = new PostgresReservationStore(pool);
  const moves = new PostgresMoveStore(pool);
  const aggregates = new PostgresAggregateStore(pool);
  const operatorSettings = new PostgresSettingsStore(pool);
  const bus = openLoggedBus({ url: options.natsUrl, name: NAME, what: "API tier", logger });
  const softState = openSoftState(options.redisUrl, logger);
  const registry = createRegistry({ service: "scheduler" });
  const followers: WatchedFollower[] = [];
  registerFollowerMetrics(registry, followers);
  const tracing = await startTracing({ service: "berth-scheduler", instance: settings.schedulerId, exportTo });
  const cellBuses = new Map<NatsBus, string>();
  const openCell = async (record: CellRecord) => openSchedulerCell(record, { followers, cellBuses, logger });
  const scheduler = createScheduler(
    {
      store,
      groups,
      reservations,
      moves,
      aggregates,
      operatorSettings,
      filters,
      decisions: new PostgresDecisionStore(pool),
      bus,
      cells: [],
      openCell,
      softState,
      clock: systemClock,
      logger,
      registry,
      tracing,
    },
    settings,
  );
  const patience = new Patience({ logger, isTransient: isUnavailable });
  const probes = createProbes({
    ...{ listen: options.listen, registry },
    isReady: () => scheduler.ready,
    remarks: () => [...describeQueue(bus), ...describeFullCells(cellBuses), ...describeObstacles(followers)],
  });
  return {
    get note() {
      return `probes at ${probes.address.host}:${probes.address.port}`;
    },
    async start() {
      await probes.start();
      await whenReachable(pool, patience);
      await scheduler.start();
    },
    close: closeOnce(async () => {
      patience.giveUp();
      await drainThenCut(scheduler.close(), { graceMs: DRAIN_MS, cut: () => closeAll([bus, ...cellBuses.keys()]) });
      await Promise.all([probes.close(), bus.close(), softState.close(), tracing.close()]);
      await store.close();
    }),
  };
}

function openSoftState(url: string, logger: Logger): RedisSoftState {
  return new RedisSoftState({
    url,
    onLost: (reason) =>
      logger.warn({ reason }, "Redis does not answer; until it does, schedulers do not know of each other"),
    onBack: () => logger.info("Redis answers again"),
  });
}

/** Waits for the API database and the bus. Rejects when the database lacks migrations. */
async function whenReachable(pool: Pool, patience: Patience): Promise<void> {
  const unready = await patience.until("the API database", () => describeUnready(pool, "api", "the API database"));
  if (unready !== null) throw new Error(unready);
}

const QUEUE_TROUBLES: Readonly<Record<StreamState, string | null>> = {
  there: null,
  full: "the work queue is full",
  missing: "the work queue is missing and is being created again",
  away: "NATS cannot be reached",
};

/** Returns the line of `/readyz` about the work queue, or nothing while the queue is usable. */
function describeQueue(bus: Pick<NatsBus, "streamState">): readonly string[] {
  const trouble = QUEUE_TROUBLES[bus.streamState()];
  return trouble === null ? [] : [`${trouble}: meanwhile sweeps place requests, some seconds later`];
}

/** Returns what `/readyz` reports of the cells' task queues. */
function describeFullCells(cellBuses: ReadonlyMap<NatsBus, string>): readonly string[] {
  return [...cellBuses].flatMap(([bus, cell]) =>
    bus.streamState() === "full"
      ? [`the queue of cell ${cell} is full: meanwhile sweeps of its conductors find the tasks`]
      : [],
  );
}

async function closeAll(buses: readonly NatsBus[]): Promise<void> {
  await Promise.all(buses.map((bus) => bus.close()));
}

/** Opens a cell in the background. The cell gets servers once its view has loaded. Throws when the cell's record is incomplete. */
function openSchedulerCell(
  record: CellRecord,
  of: { readonly followers: WatchedFollower[]; readonly cellBuses: Map<NatsBus, string>; readonly logger: Logger },
): OpenedCell {
  const { followers, cellBuses, logger } = of;
  const { name, databaseUrl, natsUrl } = record;
  if (natsUrl === null)
    throw new Error(`cell ${name} has no NATS URL: give it one with \`berth cell add ${name} --nats-url …\``);
  const what = `cell ${name}`;
  const connectionsMax = CELL_CONNECTIONS_MAX;
  const pool = openLoggedPool({ url: databaseUrl, applicationName: NAME, connectionsMax, what, logger });
  const bus = openLoggedBus({ url: natsUrl, name: NAME, what, logger });
  cellBuses.set(bus, name);
  const view = new LedgerView();
  const clock = systemClock;
  const facts = new LiveCellFacts(name, view);
  const follower = new LedgerFollower({
    ...{ cell: name, databaseUrl, view: viewWithFacts(view, facts), servers: true },
    ...{ clock, events: followerEvents(logger) },
  });
  const watched = { follower, view };
  followers.push(watched);
  follower.start();
  const store = new PostgresCellStore(pool);
  return {
    name,
    store,
    operations: store,
    bus,
    view,
    facts,
    source: follower,
    async close() {
      followers.splice(followers.indexOf(watched), 1);
      await Promise.all([follower.close(), bus.close()]);
      cellBuses.delete(bus);
      await endPool(pool);
    },
  };
}
