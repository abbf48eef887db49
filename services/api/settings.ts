import { neighbourOptions } from "../../adapters/openstack/neighbour-options.ts";
import { postgresUrl } from "../../adapters/postgres/client/postgres-url.ts";
import type { QuotaLimits } from "../../core/stores/api/quota-limits.ts";
import { withoutTrailing } from "../../core/without-trailing.ts";
import { processSettings } from "../../runtime/lifecycle.ts";
import {
  boolean,
  directory,
  duration,
  type HostPort,
  hostPort,
  integer,
  listOf,
  oneOf,
  text,
  url,
  urls,
} from "../../runtime/setting-kinds.ts";
import { type Declaration, optional, setting, type ValuesOf } from "../../runtime/settings.ts";
import { QUOTA_DEFAULTS, QUOTA_KINDS } from "./compute/quotas/quota-defaults.ts";
import type { ListBudgetSettings } from "./http/list-budget.ts";
import { AUTH_KINDS, type AuthKind } from "./identity/auth-kind.ts";
import { openNetworkOptions } from "./identity/open-network.ts";
import { IMAGE_RULES, type ImageRule } from "./image/image-rule.ts";
import { NETWORK_RULES, type NetworkRule } from "./network/network-rule.ts";
import {
  NO_OWNED_LIMITS,
  type OwnedLimitOptions,
  type OwnedLimits,
  ownedLimitOptions,
  ownedLimitsOf,
} from "./owned-limits.ts";
import { placementApiSettings } from "./placement/settings.ts";
import { VOLUME_RULES, type VolumeRule } from "./volume/volume-rule.ts";

/** Settings of the HTTP server. All times are in milliseconds. */
export interface HttpSettings {
  readonly listen: HostPort;
  /** The start of links in answers. When it is null, links start with the host that the request names. */
  readonly publicUrl: string | null;
  readonly bodyBytesMax: number;
  /** Maximum number of bytes of a request body of the Compute API. */
  readonly computeBodyBytesMax: number;
  readonly jsonDepthMax: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  /** Whether /metrics is served on the same address. A separate process serves it on another address, which clients need not reach. */
  readonly metrics: boolean;
  /** Whether each path that answers GET also answers HEAD. */
  readonly headRoutes: boolean;
  /** The path prefixes of the Compute API. Each of them serves the same API. */
  readonly computePrefixes: readonly string[];
}

/** Limits for accepting requests. */
export interface IntakeSettings {
  /** Maximum number of calls of one transaction. */
  readonly batchMax: number;
  readonly batchesInFlight: number;
  /** Maximum number of calls that wait for a transaction. A further call is answered with 503. */
  readonly queuedMax: number;
  /** Maximum number of requests of one project that are accepted and not placed yet; a further one is refused. Null for no limit. */
  readonly openRequestsMax: number | null;
  /** Maximum number of publishes that wait for the bus. Beyond it nothing is published, and the schedulers' sweep finds the requests. */
  readonly publishesInFlightMax: number;
}

/** Limits for questions to cells. */
export interface CellSettings {
  readonly deadlineMs: number;
  /** How long no question is sent to a cell after it did not answer. */
  readonly retryMs: number;
  /** A host whose agent was not heard for this long may be removed. Conductors record each second which agents are alive. */
  readonly agentUnseenMs: number;
}

export interface ApiSettings extends OwnedLimits {
  readonly http: HttpSettings;
  readonly auth: AuthKind;
  readonly intake: IntakeSettings;
  readonly cells: CellSettings;
  /** For how long a flavor, image or zone that new servers name may be cached. */
  readonly flavorCacheMs: number;
  readonly imageRule: ImageRule;
  /** The address of the console proxy, as clients of serial consoles reach it. Null when there is none. */
  readonly serialConsoleBaseUrl: string | null;
  /** The address of the page with which browsers open graphical consoles. Null when there is none. */
  readonly novncproxyBaseUrl: string | null;
  readonly consoleTokenTtlMs: number;
  /** Maximum number of bytes of one image's data. */
  readonly imageBytesMax: number;
  /** The networks that servers can be connected to. */
  readonly networks: NetworkRule;
  /** The volumes that servers can have. */
  readonly volumes: VolumeRule;
  /** Maximum number of servers that one call may create. */
  readonly serversPerCallMax: number;
  /** The limits of projects for which operators have set none. */
  readonly quotas: QuotaLimits;
  /** For how long limits of projects that Keystone has are cached. */
  readonly limitsCacheMs: number;
  /** Whether a resize may keep the server on its host. */
  readonly resizeToSameHost: boolean;
  /**
   * Whether servers may be evacuated from a host whose agent is unseen but that no operator has forced down. Such a host may still be
   * running its guests.
   */
  readonly evacuateUnfenced: boolean;
  /** 0 offloads servers as soon as they are shelved, and -1 leaves them on their hosts until an admin offloads them. */
  readonly shelvedOffloadTime: number;
  /** How long servers that are deleted can be restored; 0 deletes them at once. */
  readonly reclaimInstanceIntervalMs: number;
  /** Whether answers show a password for the server's administrator. */
  readonly instancePasswords: boolean;
  /** Whether the dashboard is served, and the sources of its data. */
  readonly dashboard: boolean;
  /** Maximum number of items on one page of a list. */
  readonly pageMax: number;
  /** Limits for list answers that are under way at the same time. */
  readonly lists: ListBudgetSettings;
}

export const apiDeclaration = {
  command: "berth api",
  about: "Serves the Compute API: accepts requests, answers for all cells.",
  settings: {
    ...processSettings,
    ...placementApiSettings,
    databaseUrl: setting(postgresUrl, { about: "API database" }),
    natsUrl: setting(urls("nats", "tls"), { about: "URL of NATS with the API tier's user" }),
    redisUrl: optional(url("redis", "rediss"), {
      about: "URL of the schedulers' Redis, for recently failed builds",
    }),
    listen: setting(hostPort, { about: "where to listen", default: "127.0.0.1:8774" }),
    filters: optional(listOf(text()), {
      about: "modules with the schedulers' own host filters, so that explanations know them",
    }),
    publicUrl: optional(url("http", "https"), {
      about: "beginning of links in answers; by default the host of the request",
    }),
    auth: setting(oneOf(...AUTH_KINDS), { about: "how callers are authenticated", default: "none" }),
    computePolicyFile: optional(text(), { about: "Compute policy: YAML file of overrides, followed while running" }),
    ...openNetworkOptions,
    metricsListen: setting(hostPort, { about: "address of /metrics, separate from the API's", default: "127.0.0.1:0" }),
    bodyBytesMax: setting(integer({ min: 1_024, max: 1 << 26 }), { about: "largest request body", default: "1048576" }),
    computeBodyBytesMax: setting(integer({ min: 1_024, max: 1 << 20 }), {
      about: "maximum size of a request body of the Compute API",
      default: "114688",
    }),
    requestTimeout: setting(duration({ minMs: 100, maxMs: 600_000 }), {
      about: "maximum duration of one request",
      default: "30s",
    }),
    cellDeadline: setting(duration({ minMs: 10, maxMs: 60_000 }), {
      about: "how long a cell may take to answer",
      default: "2s",
    }),
    flavorCache: setting(duration({ minMs: 0, maxMs: 60_000 }), {
      about: "maximum age of the cached flavors for new servers",
      default: "1s",
    }),
    images: setting(oneOf(...IMAGE_RULES), {
      about: "which images servers may use: any, only those that are registered with this api, or those of Glance",
      default: "any",
    }),
    glanceUrl: optional(url("http", "https"), {
      about: "URL of Glance; by default the one of Keystone's catalogue",
    }),
    ...ownedLimitOptions,
    imagesPath: optional(directory, {
      about:
        "directory that stores the data of uploaded images, which the hosts have as their --images-path; without it none can be uploaded",
    }),
    // Glance's option image_size_cap.
    imageBytesMax: setting(integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), {
      about: "maximum size of the data of one image",
      default: "68719476736",
    }),
    // The option `base_url` of Nova's section [serial_console].
    serialConsoleBaseUrl: optional(url("ws", "wss"), {
      about: "address of the console proxy, as clients reach it; without it no serial console can be opened",
    }),
    // The option of this name in Nova's section [vnc].
    novncproxyBaseUrl: optional(url("http", "https"), {
      about:
        "address of noVNC's page on the console proxy (--web), as https://console.example/vnc_auto.html; without it no graphical console can be opened",
    }),
    // The option `token_ttl` of Nova's section [consoleauth].
    consoleTokenTtl: setting(duration({ minMs: 1_000, maxMs: 3_600_000 }), {
      about: "how long the URL of a console may be opened, once",
      default: "10m",
    }),
    networks: setting(oneOf(...NETWORK_RULES), {
      about:
        "networks of servers: none; simple, one that all projects share and that gives each server an address; or neutron, those of Neutron",
      default: "none",
    }),
    neutronUrl: optional(url("http", "https"), {
      about: "URL of Neutron for --networks neutron; by default the one in Keystone's catalogue",
    }),
    ...neighbourOptions,
    volumes: setting(oneOf(...VOLUME_RULES), {
      about: "volumes of servers: none; simple, those of the api's own Block Storage API; or cinder, those of Cinder",
      default: "none",
    }),
    cinderUrl: optional(url("http", "https"), {
      about: "URL of Cinder for --volumes cinder; by default the one in Keystone's catalogue",
    }),
    serversPerCallMax: setting(integer({ min: 1, max: 1_000 }), {
      about: "maximum number of servers in one call",
      default: "100",
    }),
    openRequestsMax: setting(integer({ min: -1, max: 1_000_000_000 }), {
      about: "maximum number of servers of one project that wait to be placed; -1: unlimited",
      default: "10000",
    }),
    quotas: optional(oneOf(...QUOTA_KINDS, "unified"), {
      about:
        "limits of projects for which operators have set none: Nova's, or unlimited (the default without authentication); unified: only those that Keystone has",
    }),
    limitsCache: setting(duration({ minMs: 0, maxMs: 3_600_000 }), {
      about: "for how long limits that Keystone has (--quotas unified) are cached",
      default: "10s",
    }),
    serverGroupsMax: optional(integer({ min: 0, max: 1_000_000 }), {
      about: "maximum number of server groups of one project; 10 with Nova's limits, else 100",
    }),
    serverGroupMembersMax: optional(integer({ min: 0, max: 1_000_000 }), {
      about: "maximum number of servers in one server group; 10 with Nova's limits, else 1000",
    }),
    resizeToSameHost: setting(boolean, {
      about: "whether a resize may leave a server on its host",
      default: "false",
    }),
    evacuateUnfenced: setting(boolean, {
      about: "whether servers may be evacuated from a host that is down but not forced down: they may then run twice",
      default: "false",
    }),
    shelvedOffloadTime: setting(integer({ min: -1, max: 0 }), {
      about:
        "0 to offload servers as soon as they are shelved, as Nova does by default; -1 to leave that to shelveOffload, because an offloaded server loses its disk",
      default: "-1",
    }),
    reclaimInstanceInterval: setting(integer({ min: 0, max: 2_147_483 }), {
      about: "for how many seconds a deleted server can be restored; 0 to delete servers at once",
      default: "0",
    }),
    enableInstancePassword: setting(boolean, {
      about: "whether the answers to create, rebuild and evacuate contain adminPass",
      default: "true",
    }),
    dashboard: setting(boolean, {
      about: "whether /dashboard is served; only admins can read its data",
      default: "false",
    }),
  },
} as const satisfies Declaration<Record<string, ReturnType<typeof setting<unknown>>>>;

export type ApiOptions = ValuesOf<typeof apiDeclaration.settings>;

/** Derives the service's settings from the command line options. */
export function apiSettings(
  options: Pick<
    ApiOptions,
    | "listen"
    | "publicUrl"
    | "auth"
    | "bodyBytesMax"
    | "computeBodyBytesMax"
    | "requestTimeout"
    | "cellDeadline"
    | "flavorCache"
    | "images"
    | "imageBytesMax"
    | "serialConsoleBaseUrl"
    | "novncproxyBaseUrl"
    | "consoleTokenTtl"
    | "networks"
    | "volumes"
    | keyof OwnedLimitOptions
    | "serversPerCallMax"
    | "openRequestsMax"
    | "quotas"
    | "limitsCache"
    | "serverGroupsMax"
    | "serverGroupMembersMax"
    | "resizeToSameHost"
    | "evacuateUnfenced"
    | "shelvedOffloadTime"
    | "reclaimInstanceInterval"
    | "enableInstancePassword"
    | "dashboard"
  >,
): ApiSettings {
  return Object.freeze({
    ...DEFAULT_API_SETTINGS,
    http: {
      ...DEFAULT_API_SETTINGS.http,
      listen: options.listen,
      metrics: false,
      publicUrl: options.publicUrl === null ? null : withoutTrailing(options.publicUrl, "/"),
      bodyBytesMax: options.bodyBytesMax,
      computeBodyBytesMax: options.computeBodyBytesMax,
      requestTimeoutMs: options.requestTimeout,
    },
    auth: options.auth,
    cells: { ...DEFAULT_API_SETTINGS.cells, deadlineMs: options.cellDeadline },
    flavorCacheMs: options.flavorCache,
    imageRule: options.images,
    imageBytesMax: options.imageBytesMax,
    serialConsoleBaseUrl: options.serialConsoleBaseUrl,
    novncproxyBaseUrl: options.novncproxyBaseUrl,
    consoleTokenTtlMs: options.consoleTokenTtl,
    ...ownedLimitsOf(options),
    ...{ networks: options.networks, volumes: options.volumes },
    serversPerCallMax: options.serversPerCallMax,
    intake: {
      ...DEFAULT_API_SETTINGS.intake,
      openRequestsMax: options.openRequestsMax === -1 ? null : options.openRequestsMax,
    },
    ...{ quotas: quotaDefaultsOf(options), limitsCacheMs: options.limitsCache },
    ...{ resizeToSameHost: options.resizeToSameHost, evacuateUnfenced: options.evacuateUnfenced },
    shelvedOffloadTime: options.shelvedOffloadTime,
    reclaimInstanceIntervalMs: options.reclaimInstanceInterval * 1_000,
    instancePasswords: options.enableInstancePassword,
    dashboard: options.dashboard,
  });
}

/** Returns the default limits of projects. */
export function quotaDefaultsOf(
  options: Pick<ApiOptions, "auth" | "quotas"> & Partial<Pick<ApiOptions, "serverGroupsMax" | "serverGroupMembersMax">>,
): QuotaLimits {
  const kind = options.quotas ?? (options.auth === "none" ? "unlimited" : "nova");
  // Keystone's limits replace all of them.
  const defaults = QUOTA_DEFAULTS[kind === "unified" ? "nova" : kind];
  return {
    ...defaults,
    server_groups: options.serverGroupsMax ?? defaults.server_groups,
    server_group_members: options.serverGroupMembersMax ?? defaults.server_group_members,
  };
}

/** The default settings for compositions in one process and for tests. The api listens on loopback, on a free port. */
export const DEFAULT_API_SETTINGS: ApiSettings = {
  http: {
    listen: { host: "127.0.0.1", port: 0 },
    publicUrl: null,
    bodyBytesMax: 1 << 20,
    computeBodyBytesMax: 114_688,
    jsonDepthMax: 32,
    requestTimeoutMs: 30_000,
    keepAliveMs: 75_000,
    metrics: true,
    headRoutes: true,
    computePrefixes: ["/v2.1", "/compute/v2.1"],
  },
  auth: "none",
  intake: { batchMax: 500, batchesInFlight: 2, queuedMax: 20_000, publishesInFlightMax: 20_000, openRequestsMax: null },
  cells: { deadlineMs: 2_000, retryMs: 1_000, agentUnseenMs: 5_000 },
  flavorCacheMs: 1_000,
  imageRule: "any",
  serialConsoleBaseUrl: null,
  novncproxyBaseUrl: null,
  consoleTokenTtlMs: 600_000,
  ...NO_OWNED_LIMITS,
  imageBytesMax: 64 * 2 ** 30,
  networks: "none",
  volumes: "none",
  serversPerCallMax: 100,
  quotas: QUOTA_DEFAULTS.unlimited,
  limitsCacheMs: 10_000,
  resizeToSameHost: false,
  evacuateUnfenced: false,
  shelvedOffloadTime: -1,
  reclaimInstanceIntervalMs: 0,
  instancePasswords: true,
  dashboard: false,
  pageMax: 1_000,
  // Two full pages at a time: the process is busy with one while the other waits for its cells.
  lists: { rowsMax: 2_000, projectRowsMax: 1_000, waitingMax: 512, projectWaitingMax: 64, rowBytes: 8_192 },
};
