import type { Pool } from "pg";
import { openImageFiles } from "../../adapters/images/open-image-files.ts";
import { loadHostFilters } from "../../adapters/modules/load-host-filters.ts";
import { openLoggedBus } from "../../adapters/nats/logged-bus.ts";
import type { NatsBus } from "../../adapters/nats/nats-bus.ts";
import { CINDER, CinderClient } from "../../adapters/openstack/cinder-client.ts";
import { KeystoneLimits } from "../../adapters/openstack/keystone-limits.ts";
import { NEUTRON, NeutronClient } from "../../adapters/openstack/neutron-client.ts";
import { NeutronFloatingIps } from "../../adapters/openstack/neutron-floating-ips.ts";
import { NeutronSecurityGroups } from "../../adapters/openstack/neutron-security-groups.ts";
import { openNeighbours } from "../../adapters/openstack/open-neighbours.ts";
import { openProjectStores } from "../../adapters/postgres/api/open-project-stores.ts";
import { PostgresAggregateStore } from "../../adapters/postgres/api/postgres-aggregate-store.ts";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresCellArbiter } from "../../adapters/postgres/api/postgres-cell-arbiter.ts";
import { PostgresDecisionStore } from "../../adapters/postgres/api/postgres-decision-store.ts";
import { PostgresHostMapStore } from "../../adapters/postgres/api/postgres-host-map-store.ts";
import { PostgresMoveStore } from "../../adapters/postgres/api/postgres-move-store.ts";
import { PostgresRatioStore } from "../../adapters/postgres/api/postgres-ratio-store.ts";
import { PostgresReservationStore } from "../../adapters/postgres/api/postgres-reservation-store.ts";
import { PostgresServerGroupStore } from "../../adapters/postgres/api/postgres-server-group-store.ts";
import { PostgresSettingsStore } from "../../adapters/postgres/api/postgres-settings-store.ts";
import { PostgresSharedKeyStore } from "../../adapters/postgres/api/postgres-shared-key-store.ts";
import { PostgresCellStore } from "../../adapters/postgres/cell/postgres-cell-store.ts";
import { PostgresHostAdminStore } from "../../adapters/postgres/cell/postgres-host-admin-store.ts";
import { endPool } from "../../adapters/postgres/client/end-pool.ts";
import { openLoggedPool } from "../../adapters/postgres/client/logged-pool.ts";
import { isUnavailable } from "../../adapters/postgres/client/run-stored.ts";
import {
  countObstacles,
  describeObstacles,
  followerEvents,
  registerFollowerMetrics,
} from "../../adapters/postgres/follower/follower-telemetry.ts";
import { LedgerFollower } from "../../adapters/postgres/follower/ledger-follower.ts";
import { describeUnready } from "../../adapters/postgres/schema/migrate.ts";
import { RedisSoftState } from "../../adapters/redis/redis-soft-state.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { startTracing } from "../../adapters/telemetry/start-tracing.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import { LiveCellFacts, viewWithFacts } from "../../core/scheduling/live-cell-facts.ts";
import type { CellRecord } from "../../core/stores/api/api-store.ts";
import type { LimitSource } from "../../core/stores/api/limit-source.ts";
import type { BlockStorage } from "../../core/stores/block-storage.ts";
import { systemClock } from "../../runtime/clock.ts";
import type { ServiceContext } from "../../runtime/lifecycle.ts";
import type { Logger } from "../../runtime/logger.ts";
import { Patience } from "../../runtime/patience.ts";
import type { Service } from "../../runtime/service.ts";
import type { ApiDeps } from "./api-parts.ts";
import { refuseBadAuth } from "./identity/refuse-bad-auth.ts";
import { IMAGE_MARKS_KEY, openGlanceParts, refuseBadGlance } from "./image/open-glance.ts";
import { openMetrics } from "./open-metrics.ts";
import { openAccess } from "./placement/open-access.ts";
import { placementCell } from "./placement/placement-cell.ts";
import { placementMounts } from "./placement/service.ts";
import { DEFAULT_PLACEMENT_SETTINGS } from "./placement/settings.ts";
import { computeDefaults } from "./policy/compute-rules.ts";
import { followPolicy } from "./policy/follow-policy.ts";
import { Policy } from "./policy/policy.ts";
import type { CellPort, OperatorStores } from "./ports.ts";
import { type ApiService, createApi } from "./service.ts";
import { type ApiOptions, apiSettings } from "./settings.ts";
import { WaitingRoom } from "./waiting-room.ts";

/** Functions that close the opened resources, to be called in reverse order. */
type Closers = (() => Promise<unknown>)[];

/**
 * Opens the api over Postgres and NATS for the cells that the API database names now; cells that are added later need a restart
 * (docs/cells.md). Closing the api closes everything that was opened for it. A failed opening leaves nothing open.
 */
export async function openApi(context: ServiceContext<ApiOptions>, otlpEndpoint: string | null): Promise<ApiService> {
  const { settings, logger } = context;
  refuseBadOptions(settings);
  const filters = await loadHostFilters(settings.filters ?? []);
  const closers: Closers = [];
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    const patience = new Patience({ logger, isTransient: isUnavailable });
    const room = new WaitingRoom({
      listen: settings.listen,
      waitingFor: () => patience.waitingFor,
      isPlacement: (path) => path.startsWith("/placement"),
    });
    closers.push(() => room.close());
    await room.open();
    const pool = openPool(settings.databaseUrl, "API database", logger, true);
    const store = new PostgresApiStore(pool);
    closers.push(() => store.close());
    const unready = await patience.until("the API database", () => describeUnready(pool, "api", "the API database"));
    if (unready !== null) throw new Error(unready);
    const bus = openBus(settings.natsUrl, "API tier", logger, closers);
    const records = await patience.until("the cells' records", () => store.cells());
    const opened = records.map((cell) => openCell(cell, logger, closers));
    const registry = createRegistry({ service: "api" });
    registerFollowerMetrics(registry, opened);
    const tracing = await startTracing({ service: "berth-api", exportTo: otlpEndpoint });
    closers.push(() => tracing.close());
    const cells = opened.map((one) => one.port);
    const access = await openAccess(settings, logger);
    closers.push(() => access.close());
    const arbiter = new PostgresCellArbiter(pool);
    const placement = { cells: opened.map((one) => one.placement), ...access, arbiter, logger };
    const mounts = placementMounts(placement, DEFAULT_PLACEMENT_SETTINGS);
    const operators = openOperators(pool, settings.redisUrl, logger, closers);
    const deps = {
      operators,
      store,
      groups: new PostgresServerGroupStore(pool),
      reservations: new PostgresReservationStore(pool),
      decisions: new PostgresDecisionStore(pool),
      filters,
      ...openProjectStores(pool),
      ...openServices(settings, closers),
      ...(await openImageParts(settings, { pool, patience, closers })),
      moves: new PostgresMoveStore(pool),
      cells,
      bus,
      clock: systemClock,
      logger,
      registry,
      tracing,
      mounts,
      remarks: () => countObstacles(opened),
      keystone: access.keystone,
      isUnknownProject: access.isUnknownProject,
      policy: await openComputePolicy(settings.computePolicyFile, logger, closers),
      beforeListening: () => room.close(),
    };
    const api = createApi(deps, apiSettings(settings));
    const metrics = openMetrics(settings.metricsListen, registry, logger, () => describeObstacles(opened));
    closers.push(() => metrics.close());
    closers.push(() => api.close());
    return apiWith(api, metrics, closeAll);
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** Returns the rules of the Compute API, which follow the policy file, if there is one. Throws when it is broken. */
async function openComputePolicy(path: string | null, logger: Logger, closers: Closers): Promise<Policy> {
  const policy = new Policy(computeDefaults());
  if (path === null) return policy;
  const file = followPolicy(path, policy, logger);
  await file.start();
  closers.push(() => file.close());
  return policy;
}

/** Combines the api with its metrics: both start together, and closing it closes everything that was opened for it. */
function apiWith(api: ApiService, metrics: Service, close: () => Promise<void>): ApiService {
  return {
    http: api.http,
    open: () => api.open(),
    async start() {
      await metrics.start();
      await api.start();
    },
    close,
    get address() {
      return api.address;
    },
  };
}

function openCell(cell: CellRecord, logger: Logger, closers: Closers) {
  const { name, databaseUrl, natsUrl } = cell;
  if (natsUrl === null)
    throw new Error(`cell ${name} has no NATS URL: give it one with \`berth cell add ${name} --nats-url …\``);
  const pool = openPool(databaseUrl, `cell ${name}`, logger);
  closers.push(() => endPool(pool));
  const view = new LedgerView();
  const facts = new LiveCellFacts(name, view);
  const follower = new LedgerFollower({
    cell: name,
    databaseUrl,
    view: viewWithFacts(view, facts),
    servers: true,
    clock: systemClock,
    events: followerEvents(logger),
  });
  closers.push(() => follower.close());
  follower.start();
  const bus = openBus(natsUrl, `cell ${name}`, logger, closers);
  const admin = new PostgresHostAdminStore(pool);
  const port: CellPort = { name, store: new PostgresCellStore(pool), admin, bus, view, facts, source: follower };
  return { port, follower, view, placement: placementCell(name, pool, view, follower) };
}

/** Opens the clients of other OpenStack services that do not need to wait. */
const openServices = (settings: ApiOptions, closers: Closers) => ({
  ...openNetworking(settings, closers),
  ...openBlockStorage(settings, closers),
  ...openLimits(settings, closers),
});

/** Opens Neutron's client. Throws `SettingsError` when the settings of Keystone, which names Neutron's endpoint, are incomplete. */
function openNetworking(
  settings: ApiOptions,
  closers: Closers,
): Partial<Pick<ApiDeps, "networking" | "floatingIps" | "neutronSecurityGroups">> {
  if (settings.networks !== "neutron") return {};
  const neighbours = openNeighbours(settings);
  closers.push(() => neighbours.close());
  const client = neighbours.client({ ...NEUTRON, url: settings.neutronUrl });
  return {
    networking: new NeutronClient(client),
    floatingIps: new NeutronFloatingIps(client),
    neutronSecurityGroups: new NeutronSecurityGroups(client),
  };
}

/** Opens Cinder's client. Throws `SettingsError` when the settings of Keystone, which names Cinder's endpoint, are incomplete. */
function openBlockStorage(settings: ApiOptions, closers: Closers): { readonly blockStorage?: BlockStorage } {
  if (settings.volumes !== "cinder") return {};
  const neighbours = openNeighbours(settings);
  closers.push(() => neighbours.close());
  return { blockStorage: new CinderClient(neighbours.client({ ...CINDER, url: settings.cinderUrl })) };
}

/** Opens the client of Keystone's limits. Throws `SettingsError` when the settings of Keystone are incomplete. */
function openLimits(settings: ApiOptions, closers: Closers): { readonly limitSource?: LimitSource } {
  if (settings.quotas !== "unified") return {};
  const neighbours = openNeighbours(settings, { system: true });
  closers.push(() => neighbours.close());
  const client = neighbours.client({ service: "Keystone", types: ["identity"], url: neighbours.keystoneUrl });
  return { limitSource: new KeystoneLimits(client, { region: settings.openstackRegion }) };
}

function openOperators(pool: Pool, redisUrl: string | null, logger: Logger, closers: Closers): OperatorStores {
  return {
    aggregates: new PostgresAggregateStore(pool),
    ratios: new PostgresRatioStore(pool),
    settings: new PostgresSettingsStore(pool),
    hostMap: new PostgresHostMapStore(pool),
    softState: redisUrl === null ? NO_SOFT_STATE : openSoftState(redisUrl, logger, closers),
  };
}

/** Used without Redis: neither failed builds nor schedulers nor the state of the laws are known. */
const NO_SOFT_STATE: OperatorStores["softState"] = {
  buildFailures: async () => new Map(),
  clearBuildFailures: async () => undefined,
  laws: async () => null,
  living: async () => [],
  figuresOf: async () => new Map(),
};

/** Throws a `SettingsError` for settings that do not fit together. */
function refuseBadOptions(settings: ApiOptions): void {
  refuseBadAuth(settings);
  refuseBadGlance(settings);
}

/** Opens the directory of images, and Glance if the images of servers are there. */
async function openImageParts(
  settings: ApiOptions,
  { pool, patience, closers }: { readonly pool: Pool; readonly patience: Patience; readonly closers: Closers },
) {
  const imageFiles = await openImageFiles(settings.imagesPath);
  if (settings.images !== "glance") return { imageFiles, glance: null };
  const keys = new PostgresSharedKeyStore(pool);
  const key = await patience.until("the key of the marks of images", () => keys.key(IMAGE_MARKS_KEY));
  const neighbours = openNeighbours(settings);
  closers.push(() => neighbours.close());
  return { imageFiles, glance: openGlanceParts(neighbours, settings, key) };
}

function openSoftState(url: string, logger: Logger, closers: Closers): RedisSoftState {
  const softState = new RedisSoftState({
    url,
    onLost: (reason) =>
      logger.warn(
        { reason },
        "Redis does not answer; until it does, build failures and the state of the laws are unknown",
      ),
    onBack: () => logger.info("Redis answers again"),
  });
  closers.push(() => softState.close());
  return softState;
}

const NAME = "berth api";
const CONNECTIONS_MAX = 12;

function openPool(url: string, what: string, logger: Logger, findsByKeys = false) {
  return openLoggedPool({ url, applicationName: NAME, connectionsMax: CONNECTIONS_MAX, findsByKeys, what, logger });
}

function openBus(url: string, what: string, logger: Logger, closers: Closers): NatsBus {
  const bus = openLoggedBus({ url, name: NAME, what, logger });
  closers.push(() => bus.close());
  return bus;
}
