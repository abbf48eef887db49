import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { openImageFiles } from "../adapters/images/open-image-files.ts";
import { MemoryBroker } from "../adapters/memory/bus/memory-broker.ts";
import { MemorySoftState } from "../adapters/memory/memory-soft-state.ts";
import { apiPermissions, apiStreams } from "../adapters/nats/streams.ts";
import { openProjectStores } from "../adapters/postgres/api/open-project-stores.ts";
import { PostgresAggregateStore } from "../adapters/postgres/api/postgres-aggregate-store.ts";
import { PostgresApiStore } from "../adapters/postgres/api/postgres-api-store.ts";
import { PostgresCellArbiter } from "../adapters/postgres/api/postgres-cell-arbiter.ts";
import { PostgresDecisionStore } from "../adapters/postgres/api/postgres-decision-store.ts";
import { PostgresHostMapStore } from "../adapters/postgres/api/postgres-host-map-store.ts";
import { PostgresMoveStore } from "../adapters/postgres/api/postgres-move-store.ts";
import { PostgresRatioStore } from "../adapters/postgres/api/postgres-ratio-store.ts";
import { PostgresReservationStore } from "../adapters/postgres/api/postgres-reservation-store.ts";
import { PostgresServerGroupStore } from "../adapters/postgres/api/postgres-server-group-store.ts";
import { PostgresSettingsStore } from "../adapters/postgres/api/postgres-settings-store.ts";
import { createPool } from "../adapters/postgres/client/pool.ts";
import { registerFollowerMetrics } from "../adapters/postgres/follower/follower-telemetry.ts";
import { migrate } from "../adapters/postgres/schema/migrate.ts";
import { createRegistry } from "../adapters/telemetry/metrics.ts";
import { noTracing } from "../adapters/telemetry/tracing.ts";
import { conductorSettingNames } from "../audit/conductor-setting-names.ts";
import type { RunningGuest } from "../core/audit/facts.ts";
import type { HostFilter } from "../core/scheduling/filters/host-filter.ts";
import type { BlockStorage } from "../core/stores/block-storage.ts";
import { addressText } from "../runtime/address-text.ts";
import type { Bus } from "../runtime/bus.ts";
import { systemClock } from "../runtime/clock.ts";
import { DeadlineError } from "../runtime/deadline.ts";
import type { Logger, LogLevel } from "../runtime/logger.ts";
import type { Service } from "../runtime/service.ts";
import type { HostPort } from "../runtime/setting-kinds.ts";
import type { ApiDeps } from "../services/api/api-parts.ts";
import type { QuotaKind } from "../services/api/compute/quotas/quota-defaults.ts";
import type { AuthenticateToken } from "../services/api/http/identity.ts";
import type { IsUnknownProject } from "../services/api/http/refuse-unknown-project.ts";
import type { AuthKind } from "../services/api/identity/auth-kind.ts";
import type { GlanceParts } from "../services/api/image/open-glance.ts";
import type { NetworkRule } from "../services/api/network/network-rule.ts";
import type { Authenticate } from "../services/api/placement/identity.ts";
import { legacyDefaults } from "../services/api/placement/placement-rules.ts";
import { placementMounts } from "../services/api/placement/service.ts";
import { DEFAULT_PLACEMENT_SETTINGS } from "../services/api/placement/settings.ts";
import { Policy } from "../services/api/policy/policy.ts";
import { createApi } from "../services/api/service.ts";
import type { VolumeRule } from "../services/api/volume/volume-rule.ts";
import { FileJournal } from "../services/compute-agent/file-journal.ts";
import type { HostConfig } from "../services/compute-agent/host-config.ts";
import { createMemoryJournal } from "../services/compute-agent/memory-journal.ts";
import type { OwnedDriver } from "../services/compute-agent/open-driver.ts";
import { createDispatchBatcher } from "../services/scheduler/cells/dispatch-batcher.ts";
import { RequestWrites } from "../services/scheduler/placing/request-writes.ts";
import { RequestReader } from "../services/scheduler/request-reader.ts";
import { createScheduler } from "../services/scheduler/service.ts";
import { DEFAULT_SCHEDULER_SETTINGS } from "../services/scheduler/settings.ts";
import { type ApiDatabase, cellUrlBeside, openApiDatabase } from "./api-database.ts";
import { type CellPlan, type CellServices, createCellServices } from "./cell-services.ts";
import { CellThread } from "./cell-thread.ts";
import { startCloudConsoles } from "./cloud-consoles.ts";
import { CloudFaults } from "./cloud-faults.ts";
import { embeddedApiSettings } from "./embedded-api-settings.ts";
import { createEmbeddedCell, type EmbeddedCell } from "./embedded-cell.ts";
import { LawWatch } from "./law-watch.ts";
import { type CloudObserver, observeApiStore } from "./observe-stores.ts";

export interface EmbeddedCloudOptions {
  /** URL of the API database, beside which the cells' databases are created; null for the embedded Postgres in `dataDir`. */
  readonly databaseUrl: string | null;
  /** Directory of the embedded Postgres and the agents' journals; null for a temporary one, which is removed with the cloud. */
  readonly dataDir: string | null;
  readonly cells: readonly { readonly name: string; readonly hosts: readonly HostConfig[] }[];
  readonly schedulers: number;
  /** Number of conductors of each cell. */
  readonly conductors: number;
  readonly listen: HostPort;
  /** How callers are authenticated; `none` by default. */
  readonly auth?: AuthKind;
  /** Validates tokens; required for `keystone` and `password`. */
  readonly keystone?: AuthenticateToken | null;
  /** Asks Keystone about projects. Absent where they are not Keystone's. */
  readonly isUnknownProject?: IsUnknownProject | null;
  /** Authenticates callers of the Placement API, which is served under /placement if this is given. */
  readonly placement?: Authenticate;
  /** Further APIs that the api serves on its address. */
  readonly mounts?: readonly ((http: FastifyInstance) => Promise<void>)[];
  readonly logger: Logger;
  /** Whether a resize may stay on its host; false by default. */
  readonly resizeToSameHost?: boolean;
  /** How long deleted servers can be restored; by default they are deleted at once. */
  readonly reclaimInstanceIntervalMs?: number;
  /** 0 to offload servers as soon as they are shelved; otherwise `shelveOffload` does it. */
  readonly shelvedOffloadTime?: number;
  /** The networks that servers can be connected to; `none` by default. */
  readonly networks?: NetworkRule;
  /** The volumes that servers can have; `none` by default. */
  readonly volumes?: VolumeRule;
  /** Cinder, for the volumes `cinder`. Not together with `underLoad`. */
  readonly blockStorage?: BlockStorage | undefined;
  /** Glance. Without it, the images are the api's own. */
  readonly glance?: GlanceParts | undefined;
  /** Neutron, for the networks `neutron`. Not together with `underLoad`. */
  readonly neutron?: NeutronParts | undefined;
  /** Limits of projects for which operators have set none; `unlimited` by default. */
  readonly quotas?: QuotaKind;
  /** The cloud's own host filters, in addition to Nova's. */
  readonly filters?: readonly HostFilter[];
  /** Called for each commit; none by default. */
  readonly observer?: CloudObserver;
  /**
   * Prepares the cloud for heavy load: the inside of the cells gets its own thread, each cell of a temporary cloud its own database
   * server, and the API tier fewer connections to its database. The start takes longer. False by default.
   */
  readonly underLoad?: boolean;
  /** Whether the dashboard is served; false by default. */
  readonly dashboard?: boolean;
  /** Whether clients can open the consoles of guests; false by default. Not together with `underLoad`. */
  readonly consoles?: boolean;
  /** A directory of noVNC's files, with which browsers can open graphical consoles. Null for none. */
  readonly consoleWeb?: string | null;
  /** The directory that stores the bits of uploaded images, as the hosts have it. None can be uploaded without it. */
  readonly imagesPath?: string | null;
  /** Whether new images wait for their bits if there is such a directory; true by default. */
  readonly imagesNeedData?: boolean;
  /** Opens the driver of a cell's hosts; the fake one when it is absent. Not together with `underLoad`. */
  readonly openDriver?: (hosts: readonly HostConfig[]) => OwnedDriver;
  /** Called when a part cannot continue: the cloud must be closed. */
  readonly fail: (error: unknown) => void;
}

/** The parts of Neutron that an api uses. The first one is also the conductors'. */
type NeutronParts = Required<Pick<ApiDeps, "networking" | "floatingIps" | "neutronSecurityGroups">>;

/** All four services in one process, over real databases, with the in-process bus, soft state and agent link. */
export interface EmbeddedCloud {
  /** Base URL of the Compute API, without a path. */
  readonly apiUrl: string;
  /** URL of the API database, for an audit that also knows the guests on the hosts. */
  readonly databaseUrl: string;
  readonly cells: readonly EmbeddedCell[];
  /** Stops everything, the api first. Repeatable. */
  close(): Promise<void>;
}

const READY_MS = 120_000;
const POLL_MS = 20;

/**
 * Starts a cloud and resolves once it serves and every host is in its cell's ledger and in the views. A failed start leaves
 * nothing running.
 */
export async function startCloud(options: EmbeddedCloudOptions): Promise<EmbeddedCloud> {
  // Functions that close the started parts, in the order of starting. They are called in reverse order.
  const started: (() => Promise<void>)[] = [];
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closing ??= closeAll(started);
    return closing;
  };
  try {
    const database = await openApiDatabase(options, { serverPerCell: options.underLoad ?? false });
    started.push(() => database.close());
    const start = async (service: Service): Promise<void> => {
      started.push(() => service.close());
      await service.start();
    };
    const urls = await openCellDatabases(
      database,
      options.cells.map(({ name }) => name),
    );
    const createServices = servicesFor(options, (thread) => started.push(() => thread.close()));
    const breakable = options.dashboard === true && options.underLoad !== true;
    const cells = options.cells.map(({ name, hosts }, index) => {
      const plan: CellPlan = { name, hosts, databaseUrl: urls[index]!, conductors: options.conductors, breakable };
      return createEmbeddedCell({
        ...plan,
        createServices: (connectBus) => createServices(plan, connectBus),
        clock: systemClock,
        logger: options.logger,
        observer: options.observer ?? null,
      });
    });
    const tier = await createTier(options, database.url, cells);
    started.push(() => tier.close());
    for (const cell of cells) await start(cell);
    for (const scheduler of tier.schedulers) await start(scheduler);
    await start(tier.api);
    await waitUntilReady(cells);
    return {
      apiUrl: `http://${addressText(tier.api.address)}`,
      databaseUrl: database.url,
      cells,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens the cells' databases in parallel. When it rejects, all openings have ended, so that nothing is closed while one is under way. */
async function openCellDatabases(database: ApiDatabase, cells: readonly string[]): Promise<readonly string[]> {
  const opened = await Promise.allSettled(cells.map((cell) => openCellDatabase(database, cell)));
  return opened.map((each) => {
    if (each.status === "rejected") throw each.reason;
    return each.value;
  });
}

/** Returns the URL of a cell's database with the tables that this version needs. */
async function openCellDatabase(database: ApiDatabase, cell: string): Promise<string> {
  const url = (await database.cellUrl?.(cell)) ?? (await cellUrlBeside(database.url, cell));
  await migrate(url, "cell");
  return url;
}

/** Returns how a cell's own services are made: in this thread, or in one that all cells share. `opened` is called with that thread. */
function servicesFor(
  options: EmbeddedCloudOptions,
  opened: (thread: CellThread) => void,
): (plan: CellPlan, connectBus: () => Bus) => CellServices {
  const { dataDir, logger, observer = null, fail } = options;
  const fileOf = (cell: string) => (dataDir === null ? null : join(dataDir, "agents", `${cell}.journal`));
  if (options.underLoad !== true) {
    return (plan, connectBus) => {
      const file = fileOf(plan.name);
      const journal = file === null ? createMemoryJournal() : new FileJournal(file);
      const { openDriver, consoles = false, blockStorage, neutron } = options;
      return createCellServices({
        ...plan,
        blockStorage,
        networking: neutron?.networking,
        journal,
        connectBus,
        clock: systemClock,
        logger,
        observer,
        openDriver,
        consoles,
        fail,
      });
    };
  }
  const thread = new CellThread({ logLevel: logger.level as LogLevel, observer, fail });
  opened(thread);
  return (plan, connectBus) => thread.open(plan, fileOf(plan.name), connectBus);
}

/** Builds the API tier: its database, its bus, the schedulers' soft state, and its services. */
async function createTier(options: EmbeddedCloudOptions, databaseUrl: string, cells: readonly EmbeddedCell[]) {
  await migrate(databaseUrl, "api");
  const pool = openApiPool(databaseUrl, options);
  const store = new PostgresApiStore(pool);
  const groups = new PostgresServerGroupStore(pool);
  const reservations = new PostgresReservationStore(pool);
  const moves = new PostgresMoveStore(pool);
  const observed = options.observer === undefined ? store : observeApiStore(store, options.observer);
  for (const { name, databaseUrl: cellUrl } of cells) {
    await store.putCell({ name, databaseUrl: cellUrl, natsUrl: null, disabled: false });
  }
  const broker = new MemoryBroker(systemClock);
  const bus = broker.connect(apiPermissions);
  await bus.ensureStreams(apiStreams);
  const softState = new MemorySoftState(systemClock);
  const registry = createRegistry({ service: "api" });
  registerFollowerMetrics(registry, cells);
  const operators = operatorStores(pool, softState);
  const shared = { store: observed, groups, reservations, moves, bus, clock: systemClock, tracing: noTracing };
  const decisions = new PostgresDecisionStore(pool);
  const schedulerCells = cells.map(seenByScheduler);
  const requests = {
    reader: new RequestReader(observed, systemClock, DEFAULT_SCHEDULER_SETTINGS),
    writes: new RequestWrites(observed, DEFAULT_SCHEDULER_SETTINGS.batchMax),
  };
  const { filters = [] } = options;
  const lawWatch = options.dashboard === true ? createLawWatch(options, databaseUrl, cells) : null;
  const schedulers = Array.from({ length: options.schedulers }, (_, index) => {
    const name = `scheduler-${index + 1}`;
    return createScheduler(
      {
        ...shared,
        requests,
        aggregates: operators.aggregates,
        operatorSettings: operators.settings,
        decisions,
        filters,
        softState,
        cells: schedulerCells,
        logger: options.logger.child({ scheduler: name }),
        registry: createRegistry({ service: "scheduler", withProcess: false }),
      },
      { ...DEFAULT_SCHEDULER_SETTINGS, schedulerId: randomUUID() },
    );
  });
  const projectStores = openProjectStores(pool);
  const consoles = await startCloudConsoles(options, projectStores.consoleTokens);
  const api = createApi(
    {
      ...{ ...shared, operators, registry, logger: options.logger.child({ service: "api" }) },
      cells: cells.map(seenFromAbove),
      ...{ decisions, filters, blockStorage: options.blockStorage, glance: options.glance ?? null, ...options.neutron },
      ...{ ...projectStores, imageFiles: await openImageFiles(options.imagesPath ?? null) },
      imagesNeedData: options.imagesNeedData ?? true,
      ...{ keystone: options.keystone ?? null, isUnknownProject: options.isUnknownProject ?? null },
      ...faultsOf(options, cells),
      mounts: [...(options.mounts ?? []), ...placementOf(options, cells, new PostgresCellArbiter(pool))],
      laws: () => lawWatch?.laws() ?? null,
    },
    { ...embeddedApiSettings(options), ...consoles.urls },
  );
  const close = async (): Promise<void> => {
    await lawWatch?.close();
    await consoles.close();
    broker.close();
    await softState.close();
    await store.close();
  };
  return { api, schedulers, close };
}

/**
 * Each connection parses and plans every statement of the API tier separately. In a cloud that runs for a few seconds, that would be a sixth of
 * its database's work with ten connections. Batches grow while they wait for a connection.
 */
function openApiPool(url: string, { underLoad = false }: EmbeddedCloudOptions) {
  const usual = { url, applicationName: "berth api tier", findsByKeys: true };
  return createPool(underLoad ? { ...usual, connectionsMax: 3 } : usual);
}

/** The stores of the operators' settings, in the API database. */
function operatorStores(pool: ReturnType<typeof createPool>, softState: MemorySoftState) {
  return {
    aggregates: new PostgresAggregateStore(pool),
    ratios: new PostgresRatioStore(pool),
    settings: new PostgresSettingsStore(pool),
    hostMap: new PostgresHostMapStore(pool),
    softState,
  };
}

/** The Placement API over the cells' ledgers, if somebody can authenticate its callers. */
function placementOf(
  { placement: authenticate, logger }: EmbeddedCloudOptions,
  cells: readonly EmbeddedCell[],
  arbiter: PostgresCellArbiter,
) {
  if (authenticate === undefined) return [];
  const ledgers = cells.map((cell) => cell.placement);
  const deps = { cells: ledgers, authenticate, policy: new Policy(legacyDefaults()), cors: null, arbiter, logger };
  return placementMounts(deps, DEFAULT_PLACEMENT_SETTINGS);
}

/** A cloud whose cells run in this thread, and that shows a dashboard, can be broken from it. */
function faultsOf({ dashboard = false }: EmbeddedCloudOptions, cells: readonly EmbeddedCell[]) {
  const breakable = cells.flatMap(({ name, faults, link }) => (faults === null ? [] : [{ ...faults, name, link }]));
  return dashboard && breakable.length > 0 ? { faults: new CloudFaults(breakable) } : {};
}

/** The audit for the dashboard, which also reads the guests on the hosts. */
function createLawWatch({ logger }: EmbeddedCloudOptions, apiUrl: string, cells: readonly EmbeddedCell[]): LawWatch {
  const joined = async (guests: Promise<ReadonlyMap<string, readonly RunningGuest[]>>[]) =>
    new Map((await Promise.all(guests)).flatMap((of) => [...of]));
  const readGuests = async () => ({
    hosts: await joined(cells.map((cell) => cell.runningGuests())),
    copies: await joined(cells.map((cell) => cell.copies())),
    unread: new Map<string, string>(),
  });
  const settings = { pauseMs: 3_000, patienceMs: 60_000, conductorSettings: conductorSettingNames };
  return new LawWatch({ apiUrl, cells, readGuests, ...settings }, { clock: systemClock, logger });
}

/** The schedulers share the process, so they share each other's transactions. */
function seenByScheduler(cell: EmbeddedCell) {
  const dispatches = createDispatchBatcher(cell.store, DEFAULT_SCHEDULER_SETTINGS.batchMax);
  return { ...seenFromAbove(cell), operations: cell.store, dispatches };
}

function seenFromAbove({ name, store, admin, bus, view, facts, follower }: EmbeddedCell) {
  return { name, store, admin, bus, view, facts, source: follower };
}

async function waitUntilReady(cells: readonly EmbeddedCell[]): Promise<void> {
  const deadline = systemClock.monotonic() + READY_MS;
  while (!cells.every((cell) => cell.ready)) {
    if (systemClock.monotonic() > deadline) throw new DeadlineError("reporting the hosts to their cells", READY_MS);
    await delay(POLL_MS);
  }
  await Promise.all(cells.map((cell) => cell.follower.waitUntilSeen(READY_MS)));
}

async function closeAll(started: (() => Promise<void>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const stop of started.reverse()) await stop().catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw new AggregateError(errors, "closing the cloud failed");
}
