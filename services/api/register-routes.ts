import assert from "node:assert/strict";
import type { ImageService } from "../../core/stores/api/image-service.ts";
import type { ApiDeps, ApiParts } from "./api-parts.ts";
import { registerAggregateRoutes } from "./compute/aggregates/aggregate-routes.ts";
import { registerZoneRoutes } from "./compute/aggregates/zone-routes.ts";
import { registerBaremetalRoutes } from "./compute/baremetal/baremetal-routes.ts";
import { registerServiceRoutes } from "./compute/compute-services/service-routes.ts";
import { registerExtensionRoutes } from "./compute/extensions/extension-routes.ts";
import { registerExternalEventRoutes } from "./compute/external-events/external-event-routes.ts";
import { registerExtraSpecRoutes } from "./compute/flavors/extra-spec-routes.ts";
import { registerFlavorAccessRoutes } from "./compute/flavors/flavor-access-routes.ts";
import { registerFlavorRoutes } from "./compute/flavors/flavor-routes.ts";
import { registerFloatingIpRoutes } from "./compute/floating-ips/floating-ip-routes.ts";
import { registerComputeHostRoutes } from "./compute/hosts/host-routes.ts";
import { registerHypervisorRoutes } from "./compute/hypervisors/hypervisor-routes.ts";
import { registerImageMetadataRoutes } from "./compute/image-metadata/image-metadata-routes.ts";
import { registerKeypairRoutes } from "./compute/keypairs/keypair-routes.ts";
import { registerMigrationRoutes } from "./compute/migrations/migration-routes.ts";
import { registerNetworkProxies } from "./compute/network-proxies/network-proxy-routes.ts";
import { computeDocument } from "./compute/openapi/compute-document.ts";
import { registerLimitsRoutes } from "./compute/quotas/limits-routes.ts";
import { registerQuotaClassRoutes } from "./compute/quotas/quota-class-routes.ts";
import { registerQuotaSetRoutes } from "./compute/quotas/quota-set-routes.ts";
import { registerRemoteConsoleRoutes } from "./compute/remote-consoles/remote-console-routes.ts";
import { registerRemovedRoutes } from "./compute/removed/removed-routes.ts";
import { registerSecurityGroupRoutes } from "./compute/security-groups/security-group-routes.ts";
import { registerActionRoutes } from "./compute/server-actions/action-routes.ts";
import { registerDetailRoutes } from "./compute/server-details/detail-routes.ts";
import { registerGroupRoutes } from "./compute/server-groups/group-routes.ts";
import { registerInterfaceRoutes } from "./compute/server-interfaces/interface-routes.ts";
import { registerMetadataRoutes } from "./compute/server-metadata/metadata-routes.ts";
import { registerShareRoutes } from "./compute/server-shares/share-routes.ts";
import { registerTagRoutes } from "./compute/server-tags/tag-routes.ts";
import { registerAttachmentRoutes } from "./compute/server-volumes/attachment-routes.ts";
import { registerServerRoutes } from "./compute/servers/server-routes.ts";
import { registerAuditLogRoutes } from "./compute/usage/audit-log-routes.ts";
import { registerUsageRoutes } from "./compute/usage/usage-routes.ts";
import { CinderProxiedVolumes } from "./compute/volume-proxies/cinder-proxied-volumes.ts";
import { OwnProxiedVolumes } from "./compute/volume-proxies/own-proxied-volumes.ts";
import type { ProxiedVolumes } from "./compute/volume-proxies/proxied-volumes.ts";
import { registerSnapshotProxies, registerVolumeProxies } from "./compute/volume-proxies/volume-proxy-routes.ts";
import { registerAssistedSnapshotRoutes } from "./compute/volume-snapshots/assisted-snapshot-routes.ts";
import { type Dashboard, registerDashboard } from "./dashboard/register-dashboard.ts";
import type { Http } from "./http/create-http.ts";
import { registerDocument } from "./http/document-route.ts";
import type { ResolveIdentity } from "./http/identity.ts";
import { registerNeighbour } from "./http/register-neighbour.ts";
import { registerVersion } from "./http/version-routes.ts";
import type { ImageDataRule } from "./image/change-images.ts";
import { registerImageDataRoutes } from "./image/image-data-routes.ts";
import { registerImageProxy } from "./image/image-proxy-routes.ts";
import { registerImageRoutes } from "./image/image-routes.ts";
import { registerNetworkRoutes } from "./network/network-routes.ts";
import { registerPortRoutes } from "./network/port-routes.ts";
import { registerGroupNetworking } from "./network/security-groups/group-networking-routes.ts";
import type { ImageOrigin } from "./operators/image-file-routes.ts";
import { registerOperators } from "./operators/register-operators.ts";
import type { ApiSettings } from "./settings.ts";
import { registerBlockStorageRoutes } from "./volume/block-storage-routes.ts";
import { registerVolumeRoutes } from "./volume/volume-routes.ts";

/** Registers the operators' routes, if this process has the stores of the operators' settings. */
export function registerOperatorRoutes(
  deps: ApiDeps,
  { http, server, syncer }: ApiParts,
  { imageRule, dashboard: hasDashboard }: ApiSettings,
  resolveIdentity: ResolveIdentity,
): void {
  const { operators: stores, cells, groups, decisions, filters: ownFilters = [] } = deps;
  if (stores === undefined || syncer === null) return;
  const { flavors } = server;
  // An explanation provides no host with an image.
  const images = server.images && { find: server.images.find.bind(server.images) };
  const kept = decisions ?? null;
  const from = { stores, cells, groups, flavors, images, imageRule, decisions: kept, ownFilters };
  const explain = { ...from, life: server, hasDashboard };
  const origin = imageOriginOf(deps, server.images);
  registerOperators(http, { stores, cells: server.cells, syncer, servers: server }, explain, origin, resolveIdentity);
}

/** Returns where the images are whose files operators remove. Null without images. */
function imageOriginOf({ glance, images: store }: ApiDeps, service: ImageService | null): ImageOrigin | null {
  if (glance) return service === null ? null : { kind: "glance", service };
  return store === undefined ? null : { kind: "own", store };
}

/** Registers the dashboard, which the service closes. */
export function openDashboard(
  deps: ApiDeps,
  { http, server, events }: ApiParts,
  resolveIdentity: ResolveIdentity,
): Dashboard {
  const { store, cells: ports, operators, clock, laws = null, faults = null } = deps;
  const { cells } = server;
  return registerDashboard(
    http,
    { store, ports, cells, softState: operators?.softState ?? null, laws, faults, clock, events },
    resolveIdentity,
  );
}

/** Registers the parts of the Image, Networking and Block Storage APIs that are served. */
function registerNeighbours(
  { images, imageFiles, imagesNeedData = true, networkPorts, volumes, clock }: ApiDeps,
  { http, server, imageCatalog: catalog }: ApiParts,
  settings: ApiSettings,
  resolveIdentity: ResolveIdentity,
): void {
  const { pageMax, networks, imagesPerProjectMax: ownedMax, portsPerProjectMax, volumesPerProject: limits } = settings;
  const { publicUrl, requestTimeoutMs: idleMs } = settings.http;
  const options = { pageMax, publicUrl };
  if (images && catalog) {
    const files = imageFiles ?? null;
    const data: ImageDataRule = files === null ? "none" : imagesNeedData ? "required" : "optional";
    const imageDeps = { store: images, catalog, clock, ownedMax, data, files };
    registerNeighbour(http, { prefix: "/image", serviceTypes: ["image"] }, resolveIdentity, (scope) => {
      registerImageRoutes(scope, imageDeps, options);
      registerImageDataRoutes(scope, imageDeps, { bytesMax: settings.imageBytesMax, idleMs });
    });
  }
  // Neutron serves its API itself.
  if (networkPorts && networks !== "neutron") {
    registerNeighbour(http, { prefix: "/network", serviceTypes: ["network"] }, resolveIdentity, (scope) => {
      registerPortRoutes(scope, { store: networkPorts, clock, networks, ownedMax: portsPerProjectMax }, options);
      registerNetworkRoutes(scope, networks, networkPorts);
      if (server.securityGroups !== null) registerGroupNetworking(scope, server.securityGroups);
    });
  }
  if (volumes && settings.volumes === "simple") {
    registerNeighbour(
      http,
      { prefix: "/volume", serviceTypes: ["volumev3", "block-storage"] },
      resolveIdentity,
      (scope) => {
        registerVolumeRoutes(scope, { store: volumes, clock, limits }, options);
        registerBlockStorageRoutes(scope, { store: volumes, clock, limits }, options);
      },
    );
  }
}

/** Registers routes of the Compute API below a prefix. */
type RegisterRoutes = (scope: Http, prefix: string, deps: ApiDeps, parts: ApiParts, settings: ApiSettings) => void;

function routeOptions(prefix: string, { server }: ApiParts, settings: ApiSettings) {
  return {
    prefix,
    publicUrl: settings.http.publicUrl,
    pageMax: settings.pageMax,
    serversPerCallMax: settings.serversPerCallMax,
    // Volumes are given back after twice the time of a request.
    renewMs: Math.min(10_000, settings.http.requestTimeoutMs / 2),
    imageRule: settings.imageRule,
    imagesPerProjectMax: settings.imagesPerProjectMax,
    serialConsoleBaseUrl: settings.serialConsoleBaseUrl,
    novncproxyBaseUrl: settings.novncproxyBaseUrl,
    consoleTokenTtlMs: settings.consoleTokenTtlMs,
    limits: server.limits,
    resizeToSameHost: settings.resizeToSameHost,
    evacuateUnfenced: settings.evacuateUnfenced,
    shelvedOffloadTime: settings.shelvedOffloadTime,
    instancePasswords: settings.instancePasswords,
  };
}

/** Registers the routes that list, create, change, move and delete servers, and that disable hosts or force them down. */
const registerServerLife: RegisterRoutes = (scope, prefix, deps, parts, settings) => {
  const { server } = parts;
  const options = routeOptions(prefix, parts, settings);
  registerServerRoutes(scope, server, options);
  registerActionRoutes(scope, server, options);
  registerMigrationRoutes(scope, server, options);
  registerServiceRoutes(scope, {
    ...{ cells: server.cells, stores: deps.operators ?? null, clock: deps.clock },
    agentUnseenMs: settings.cells.agentUnseenMs,
  });
};

/** Registers the routes of `registerServerLife` and the one for events of other services. Where this api has volumes, or ports in Neutron, it registers the routes for those of servers, too. */
const registerServersWithNeighbours: RegisterRoutes = (scope, prefix, deps, parts, settings) => {
  registerServerLife(scope, prefix, deps, parts, settings);
  if (parts.server.volumes !== null)
    registerAttachmentRoutes(scope, parts.server, routeOptions(prefix, parts, settings));
  if (parts.server.neutron !== null) registerInterfaceRoutes(scope, parts.server);
  registerExternalEventRoutes(scope, parts.server);
  registerAssistedSnapshotRoutes(scope, parts.server);
};

/** Returns what the proxies of the Block Storage API show: Berth's own volumes, those of Cinder, or null for none. */
function openProxiedVolumes(
  { volumes: store, blockStorage: storage, clock }: ApiDeps,
  { volumes: rule, auth, volumesPerProject: limits }: ApiSettings,
): ProxiedVolumes | null {
  if (store === undefined || rule === "none") return null;
  if (rule === "simple") return new OwnProxiedVolumes({ store, clock, limits });
  assert(storage !== undefined, "an api with Cinder needs its client");
  return new CinderProxiedVolumes({ store, storage }, { sendsTokens: auth === "keystone" });
}

/** Registers the whole Compute API. */
const registerRoutes: RegisterRoutes = (scope, prefix, deps, parts, settings) => {
  const { server, syncer } = parts;
  const options = routeOptions(prefix, parts, settings);
  const { isUnknownProject = null } = deps;
  const flavorDeps = { store: deps.store, catalog: server.flavors, isUnknownProject };
  registerVersion(scope, prefix, settings.http.publicUrl);
  registerExtensionRoutes(scope);
  registerRemovedRoutes(scope);
  registerDocument(scope, prefix, computeDocument);
  registerServerLife(scope, prefix, deps, parts, settings);
  registerDetailRoutes(scope, server);
  registerInterfaceRoutes(scope, server);
  registerAttachmentRoutes(scope, server, options);
  registerShareRoutes(scope, server);
  registerRemoteConsoleRoutes(scope, server, options);
  registerMetadataRoutes(scope, server);
  registerTagRoutes(scope, server, options);
  registerFlavorRoutes(scope, flavorDeps, options);
  registerGroupRoutes(scope, deps.groups, options);
  registerUsageRoutes(scope, server, options);
  registerAuditLogRoutes(scope, server);
  if (parts.quotaSets !== null) {
    const quotas = { store: parts.quotaSets, groups: deps.groups, limits: server.limits, isUnknownProject };
    registerQuotaSetRoutes(scope, quotas);
    registerQuotaClassRoutes(scope, quotas);
    registerLimitsRoutes(scope, quotas);
  }
  if (deps.keypairs) registerKeypairRoutes(scope, { store: deps.keypairs, clock: deps.clock }, options);
  if (server.securityGroups !== null) registerSecurityGroupRoutes(scope, server.securityGroups, options);
  if (server.images !== null) {
    registerImageProxy(scope, server.images, options);
    registerImageMetadataRoutes(scope, { images: server.images, limits: server.limits });
  }
  registerNetworkProxies(scope, server);
  registerBaremetalRoutes(scope);
  registerFloatingIpRoutes(scope, server);
  const proxied = openProxiedVolumes(deps, settings);
  registerVolumeProxies(scope, proxied, options);
  registerSnapshotProxies(scope, proxied, options);
  registerExtraSpecRoutes(scope, flavorDeps);
  registerFlavorAccessRoutes(scope, flavorDeps);
  registerExternalEventRoutes(scope, server);
  registerAssistedSnapshotRoutes(scope, server);
  registerHypervisorRoutes(scope, server, options);
  if (deps.operators !== undefined && syncer !== null) {
    const operators = { stores: deps.operators, cells: server.cells, syncer };
    registerAggregateRoutes(scope, { ...operators, images: server.images }, options);
    registerZoneRoutes(scope, operators);
    registerComputeHostRoutes(scope, operators);
  }
};

/** The routes of an api beside its probes and its list of versions. */
export interface ApiRoutes {
  /** Called for each prefix of the Compute API. */
  readonly compute: RegisterRoutes;
  readonly neighbours: typeof registerNeighbours;
}

/** Every route that the settings allow. */
export const ALL_ROUTES: ApiRoutes = { compute: registerRoutes, neighbours: registerNeighbours };

/** The routes that the simulator's users call. Each route costs each start of an api some time, and the simulator starts apis very often. */
export const SERVER_LIFE_ROUTES: ApiRoutes = { compute: registerServersWithNeighbours, neighbours: () => {} };
