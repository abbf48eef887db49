import type { FastifyInstance } from "fastify";
import type { Registry } from "prom-client";
import { apiStreams } from "../../adapters/nats/streams.ts";
import type { Tracing } from "../../adapters/telemetry/tracing.ts";
import type { HostFilter } from "../../core/scheduling/filters/host-filter.ts";
import type { ConsoleTokenStore } from "../../core/stores/api/console-token-store.ts";
import type { DecisionStore } from "../../core/stores/api/decision-store.ts";
import type { ImageStore } from "../../core/stores/api/image-store.ts";
import type { KeypairStore } from "../../core/stores/api/keypair-store.ts";
import type { MoveStore } from "../../core/stores/api/move-store.ts";
import type { PortStore } from "../../core/stores/api/port-store.ts";
import type { QuotaStore } from "../../core/stores/api/quota-store.ts";
import type { LawsReading } from "../../core/stores/laws-reading.ts";
import type { Bus } from "../../runtime/bus.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Service } from "../../runtime/service.ts";
import type { HostPort } from "../../runtime/setting-kinds.ts";
import type { Ticker } from "../../runtime/ticker.ts";
import { CellClient } from "./cells/cell-client.ts";
import { registerAggregateRoutes } from "./compute/aggregates/aggregate-routes.ts";
import { HostSyncer } from "./compute/aggregates/host-syncer.ts";
import { registerZoneRoutes } from "./compute/aggregates/zone-routes.ts";
import { registerServiceRoutes } from "./compute/compute-services/service-routes.ts";
import { registerExtensionRoutes } from "./compute/extensions/extension-routes.ts";
import { registerExternalEventRoutes } from "./compute/external-events/external-event-routes.ts";
import { registerExtraSpecRoutes } from "./compute/flavors/extra-spec-routes.ts";
import { registerFlavorAccessRoutes } from "./compute/flavors/flavor-access-routes.ts";
import { FlavorCatalog } from "./compute/flavors/flavor-catalog.ts";
import { registerFlavorRoutes } from "./compute/flavors/flavor-routes.ts";
import { registerComputeHostRoutes } from "./compute/hosts/host-routes.ts";
import { registerHypervisorRoutes } from "./compute/hypervisors/hypervisor-routes.ts";
import { registerKeypairRoutes } from "./compute/keypairs/keypair-routes.ts";
import { registerMigrationRoutes } from "./compute/migrations/migration-routes.ts";
import { computeDocument } from "./compute/openapi/compute-document.ts";
import { registerLimitsRoutes } from "./compute/quotas/limits-routes.ts";
import { ProjectLimits } from "./compute/quotas/project-limits.ts";
import { registerQuotaClassRoutes } from "./compute/quotas/quota-class-routes.ts";
import { registerQuotaSetRoutes } from "./compute/quotas/quota-set-routes.ts";
import { registerRemoteConsoleRoutes } from "./compute/remote-consoles/remote-console-routes.ts";
import { registerRemovedRoutes } from "./compute/removed/removed-routes.ts";
import { registerActionRoutes } from "./compute/server-actions/action-routes.ts";
import { MoveAcceptor } from "./compute/server-actions/move-acceptor.ts";
import { openSettlers } from "./compute/server-actions/open-settlers.ts";
import type { ActionDeps } from "./compute/server-actions/run-action.ts";
import { registerDetailRoutes } from "./compute/server-details/detail-routes.ts";
import { registerGroupRoutes } from "./compute/server-groups/group-routes.ts";
import { registerInterfaceRoutes } from "./compute/server-interfaces/interface-routes.ts";
import { registerMetadataRoutes } from "./compute/server-metadata/metadata-routes.ts";
import { registerShareRoutes } from "./compute/server-shares/share-routes.ts";
import { registerTagRoutes } from "./compute/server-tags/tag-routes.ts";
import { CellWatch } from "./compute/servers/cell-watch.ts";
import { UNSUPPORTED_CREATE_FIELDS } from "./compute/servers/create-schema.ts";
import { DeletionMarker } from "./compute/servers/deletion-marker.ts";
import { KnownZones } from "./compute/servers/known-zones.ts";
import { RequestAcceptor } from "./compute/servers/request-acceptor.ts";
import { RequestFinder } from "./compute/servers/request-finder.ts";
import { registerServerRoutes } from "./compute/servers/server-routes.ts";
import { registerAuditLogRoutes } from "./compute/usage/audit-log-routes.ts";
import { registerUsageRoutes } from "./compute/usage/usage-routes.ts";
import type { FaultPanel } from "./dashboard/fault-panel.ts";
import type { LiveStream } from "./dashboard/live-stream.ts";
import { registerDashboard } from "./dashboard/register-dashboard.ts";
import { ApiEvents } from "./events.ts";
import { boundLists } from "./http/bound-lists.ts";
import { createHttp, type Http } from "./http/create-http.ts";
import { registerDocument } from "./http/document-route.ts";
import { type AuthenticateToken, identityResolver, type ResolveIdentity } from "./http/identity.ts";
import { ListBudget } from "./http/list-budget.ts";
import { registerProbes } from "./http/probe-routes.ts";
import { registerCompute } from "./http/register-compute.ts";
import { registerNeighbour } from "./http/register-neighbour.ts";
import { registerVersion, registerVersionList } from "./http/version-routes.ts";
import { ImageCatalog } from "./image/image-catalog.ts";
import { registerImageProxy } from "./image/image-proxy-routes.ts";
import { registerImageRoutes } from "./image/image-routes.ts";
import { registerNetworkRoutes } from "./network/network-routes.ts";
import { registerPortRoutes } from "./network/port-routes.ts";
import { PortSweeper } from "./network/port-sweeper.ts";
import { registerOperators } from "./operators/register-operators.ts";
import type { ApiDatabasePort, CellPort, OperatorStores, ReservationsPort, ServerGroupsPort } from "./ports.ts";
import { queueRemarks } from "./queue-remarks.ts";
import type { ApiSettings } from "./settings.ts";

/** How often changes of operators are written to the cells, and how often all of them are compared. */
const SYNC_MS = 1_000;
const FULL_SYNC_MS = 60_000;
/** How often ports of servers that are gone are looked for. */
const PORT_SWEEP_MS = 30_000;

export interface ApiDeps {
  readonly store: ApiDatabasePort;
  readonly groups: ServerGroupsPort;
  readonly reservations: ReservationsPort;
  readonly cells: readonly CellPort[];
  /** The stores of the operators' settings. Without them there are no aggregates, zones or ratios, and settings have their defaults. */
  readonly operators?: OperatorStores;
  /** The decisions of schedulers. Without this store, they cannot be explained. */
  readonly decisions?: Pick<DecisionStore, "decisionsOf">;
  /** The schedulers' own filters, for explanations. */
  readonly filters?: readonly HostFilter[];
  /** The registered images. Without this store, images are not registered and servers may name any image. */
  readonly images?: ImageStore;
  /** The network ports. Without this store, there are none. */
  readonly networkPorts?: PortStore;
  /** Quotas and their use. Without this store, every project has the default quotas, and servers are not counted. */
  readonly quotas?: QuotaStore;
  /** The keypairs of users. Without this store, there are none. */
  readonly keypairs?: KeypairStore;
  readonly consoleTokens?: ConsoleTokenStore;
  /** The accepted moves. Without this store, no server is moved to another host. */
  readonly moves?: MoveStore;
  /** Finds the identity behind a token; required where Keystone authenticates callers. */
  readonly keystone?: AuthenticateToken | null;
  /** The API tier's own bus. */
  readonly bus: Pick<Bus, "publish" | "ensureStreams" | "streamState">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing;
  /** Further lines in the answer of `/readyz`. */
  readonly remarks?: () => readonly string[];
  /** Called after everything else has started, just before the api listens. */
  readonly beforeListening?: () => Promise<void>;
  /** Returns what a continuous audit in this process has found, for the dashboard. */
  readonly laws?: () => LawsReading | null;
  /** Injects faults into parts of the cloud from the dashboard, only for clouds in one process. */
  readonly faults?: FaultPanel;
  /** Other APIs to serve on the same address, each under a path of its own. */
  readonly mounts?: readonly ((http: FastifyInstance) => Promise<void>)[];
}

export interface ApiService extends Service {
  /** The address that the api listens on, with the port that was bound. Available only after `start`. */
  readonly address: HostPort;
  /** The HTTP server, for calls without a socket in tests and in compositions of one process. */
  readonly http: FastifyInstance;
  /** Does everything that `start` does except listening, for callers that use only `http`. */
  open(): Promise<void>;
}

/** Builds the api. The caller owns the deps: `close` ends the work of the api, not its stores and buses. */
export function createApi(deps: ApiDeps, settings: ApiSettings): ApiService {
  const parts = createParts(deps, settings);
  const { http, events, server, background } = parts;
  const watch = new CellWatch(deps.cells, { marker: server.marker, events, clock: deps.clock });
  let serving = false;
  let closed: Promise<void> | null = null;

  registerProbes(http, {
    registry: settings.http.metrics ? deps.registry : null,
    // Requests are accepted even while NATS is unreachable, since the schedulers' sweeps find them. A NATS server without the work queue
    // must be repaired first.
    isServing: () => serving && deps.bus.streamState() !== "missing",
    ping: () => deps.store.ping(),
    remarks: () => [...queueRemarks(deps.bus), ...(deps.remarks?.() ?? [])],
  });
  registerVersionList(http, settings.http.publicUrl);
  const resolveIdentity = identityResolver(settings.auth, deps.keystone ?? null);
  registerCompute(http, {
    prefixes: settings.http.computePrefixes,
    bodyBytesMax: Math.min(settings.http.computeBodyBytesMax, settings.http.bodyBytesMax),
    resolveIdentity,
    register: (scope, prefix) => registerRoutes(scope, prefix, deps, parts, settings),
  });
  registerOperatorRoutes(deps, parts, settings, resolveIdentity);
  registerNeighbours(deps, parts, settings, resolveIdentity);
  const live = settings.dashboard ? openDashboard(deps, parts, resolveIdentity) : null;
  http.register(async (scope) => {
    for (const mount of deps.mounts ?? []) await mount(scope);
  });

  const close = async () => {
    serving = false;
    await Promise.all([watch.close(), ...background.map((one) => one.stop())]);
    live?.close();
    await http.close();
    await Promise.all([server.acceptor.settle(), server.mover?.settle(), server.marker.settle()]);
  };
  const open = async () => {
    await http.ready();
    // Requests are accepted without the bus, so an unreachable bus must not keep the api from starting.
    const streams = deps.bus.ensureStreams(apiStreams).catch((error: unknown) => events.streamsMissing(error));
    await Promise.all([streams, watch.start()]);
    for (const one of background) one.start();
    serving = true;
  };
  return {
    http,
    open,
    get address() {
      const bound = http.server.address();
      if (bound === null || typeof bound === "string") throw new Error("the api is not listening yet");
      return { host: bound.address, port: bound.port };
    },
    async start() {
      try {
        await open();
        await deps.beforeListening?.();
        const { host, port } = settings.http.listen;
        events.listening(await http.listen({ host, port }));
      } catch (error) {
        await close();
        throw error;
      }
    },
    close() {
      closed ??= close();
      return closed;
    },
  };
}

interface Parts {
  readonly http: Http;
  readonly events: ApiEvents;
  readonly server: ActionDeps;
  /** Null when this process has no stores of the operators' settings. */
  readonly syncer: HostSyncer | null;
  /** Its work beside calls, which runs from the start to the end of the service. */
  readonly background: readonly Pick<Ticker, "start" | "stop">[];
}

function createParts(deps: ApiDeps, settings: ApiSettings): Parts {
  const { store, clock } = deps;
  const events = new ApiEvents(deps.logger, deps.registry);
  const cells = new Map(deps.cells.map((cell) => [cell.name, new CellClient(cell, { clock, events }, settings.cells)]));
  const { moves, quotas = null } = deps;
  const limits = new ProjectLimits(
    { store: quotas, clock },
    { defaults: settings.quotas, cacheMs: settings.flavorCacheMs },
  );
  const server: ActionDeps = {
    store,
    groups: deps.groups,
    cells,
    clock,
    events,
    acceptor: new RequestAcceptor(
      { store, reservations: deps.reservations, bus: deps.bus, events },
      { ...settings.intake, quotas: quotas === null ? null : settings.quotas },
    ),
    limits,
    finder: new RequestFinder({ store }),
    flavors: new FlavorCatalog({ store, clock }, { cacheMs: settings.flavorCacheMs }),
    marker: new DeletionMarker({ store, events, networkPorts: sweptPorts(deps, settings) }),
    zones: new KnownZones({ stores: deps.operators ?? null, clock }, { cacheMs: SYNC_MS }),
    images: deps.images ? new ImageCatalog({ store: deps.images, clock }, { cacheMs: settings.flavorCacheMs }) : null,
    imageStore: deps.images ?? null,
    consoleTokens: deps.consoleTokens ?? null,
    networkPorts: deps.networkPorts ?? null,
    networks: settings.networks,
    keypairs: deps.keypairs ?? null,
    movesStore: moves ?? null,
    mover: moves
      ? new MoveAcceptor(
          { store: moves, bus: deps.bus, clock, events, quotas },
          { ...settings.intake, quotas: settings.quotas },
        )
      : null,
    decisions: deps.decisions ?? null,
  };
  const http = createHttp({ events, tracing: deps.tracing }, settings.http, UNSUPPORTED_CREATE_FIELDS);
  const sendMsMax = 2 * settings.http.requestTimeoutMs;
  boundLists(http, new ListBudget(settings.lists), { pageMax: settings.pageMax, sendMsMax });
  const syncer =
    deps.operators === undefined
      ? null
      : new HostSyncer({ stores: deps.operators, cells, events, clock }, { pollMs: SYNC_MS, fullMs: FULL_SYNC_MS });
  const settlers = openSettlers(
    { quotas, moves, images: deps.images, catalog: server.images, store, cells, events, clock },
    { settleMs: 2 * settings.http.requestTimeoutMs },
  );
  const networkPorts = sweptPorts(deps, settings);
  const sweeper =
    networkPorts === null ? null : new PortSweeper({ networkPorts, events, clock }, { pollMs: PORT_SWEEP_MS });
  const background = [syncer, ...settlers, sweeper].filter((one) => one !== null);
  return { http, events, server, syncer, background };
}

/** Returns the store of ports if servers get ports of Berth's own network, which end with them. */
const sweptPorts = ({ networkPorts }: ApiDeps, { networks }: ApiSettings): PortStore | null =>
  networks === "simple" ? (networkPorts ?? null) : null;

/** Registers the operators' routes, if this process has the stores of the operators' settings. */
function registerOperatorRoutes(
  { operators: stores, cells, groups, decisions, filters: ownFilters = [] }: ApiDeps,
  { http, server, syncer }: Parts,
  { imageRule }: ApiSettings,
  resolveIdentity: ResolveIdentity,
): void {
  if (stores === undefined || syncer === null) return;
  const { flavors, images } = server;
  const kept = decisions ?? null;
  const explain = { stores, cells, groups, flavors, images, imageRule, decisions: kept, ownFilters, life: server };
  registerOperators(http, { stores, cells: server.cells, syncer }, explain, server.imageStore, resolveIdentity);
}

function openDashboard(deps: ApiDeps, { http, server }: Parts, resolveIdentity: ResolveIdentity): LiveStream {
  const { store, cells: ports, operators, clock, laws = null, faults = null } = deps;
  const { cells } = server;
  return registerDashboard(
    http,
    { store, ports, cells, softState: operators?.softState ?? null, laws, faults, clock },
    resolveIdentity,
  );
}

/** Registers the parts of the Image and Networking APIs that are served. */
function registerNeighbours(
  { images, networkPorts, clock }: ApiDeps,
  { http, server }: Parts,
  { pageMax, networks, imagesPerProjectMax: ownedMax, http: { publicUrl } }: ApiSettings,
  resolveIdentity: ResolveIdentity,
): void {
  const options = { pageMax, publicUrl };
  const catalog = server.images;
  if (images && catalog) {
    registerNeighbour(http, "/image", resolveIdentity, (scope) =>
      registerImageRoutes(scope, { store: images, catalog, clock, ownedMax }, options),
    );
  }
  if (networkPorts) {
    registerNeighbour(http, "/network", resolveIdentity, (scope) => {
      registerPortRoutes(scope, { store: networkPorts, clock, networks }, options);
      registerNetworkRoutes(scope, networks, networkPorts);
    });
  }
}

function registerRoutes(
  scope: Http,
  prefix: string,
  deps: ApiDeps,
  { server, syncer }: Parts,
  settings: ApiSettings,
): void {
  const options = {
    prefix,
    publicUrl: settings.http.publicUrl,
    pageMax: settings.pageMax,
    serversPerCallMax: settings.serversPerCallMax,
    imageRule: settings.imageRule,
    imagesPerProjectMax: settings.imagesPerProjectMax,
    serialConsoleBaseUrl: settings.serialConsoleBaseUrl,
    consoleTokenTtlMs: settings.consoleTokenTtlMs,
    limits: server.limits,
    resizeToSameHost: settings.resizeToSameHost,
    evacuateUnfenced: settings.evacuateUnfenced,
    shelvedOffloadTime: settings.shelvedOffloadTime,
    instancePasswords: settings.instancePasswords,
  };
  const flavorDeps = { store: deps.store, catalog: server.flavors };
  registerVersion(scope, prefix, settings.http.publicUrl);
  registerExtensionRoutes(scope);
  registerRemovedRoutes(scope);
  registerDocument(scope, prefix, computeDocument);
  registerServerRoutes(scope, server, options);
  registerActionRoutes(scope, server, options);
  registerMigrationRoutes(scope, server, options);
  registerInterfaceRoutes(scope, server);
  registerDetailRoutes(scope, server);
  registerShareRoutes(scope, server);
  registerRemoteConsoleRoutes(scope, server, options);
  registerMetadataRoutes(scope, server);
  registerTagRoutes(scope, server, options);
  registerFlavorRoutes(scope, flavorDeps, options);
  registerGroupRoutes(scope, deps.groups, options);
  registerUsageRoutes(scope, server, options);
  registerAuditLogRoutes(scope, server);
  if (deps.quotas) {
    const quotas = { store: deps.quotas, groups: deps.groups, limits: server.limits };
    registerQuotaSetRoutes(scope, quotas);
    registerQuotaClassRoutes(scope, quotas);
    registerLimitsRoutes(scope, quotas);
  }
  if (deps.keypairs) registerKeypairRoutes(scope, { store: deps.keypairs, clock: deps.clock }, options);
  if (deps.images) registerImageProxy(scope, deps.images, options);
  registerExtraSpecRoutes(scope, flavorDeps);
  registerFlavorAccessRoutes(scope, flavorDeps);
  registerExternalEventRoutes(scope, server);
  registerHypervisorRoutes(scope, server, options);
  registerServiceRoutes(scope, { cells: server.cells, stores: deps.operators ?? null });
  if (deps.operators !== undefined && syncer !== null) {
    const operators = { stores: deps.operators, cells: server.cells, syncer };
    registerAggregateRoutes(scope, operators);
    registerZoneRoutes(scope, operators);
    registerComputeHostRoutes(scope, operators);
  }
}
