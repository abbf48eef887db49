import { postgresUrl } from "../../../adapters/postgres/client/postgres-url.ts";
import type { GenerationStrategy } from "../../../core/candidates/every/placement-search.ts";
import { processSettings } from "../../../runtime/lifecycle.ts";
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
} from "../../../runtime/setting-kinds.ts";
import { optional, setting, type ValuesOf } from "../../../runtime/settings.ts";
import { AUTH_KINDS } from "../identity/auth-kind.ts";
import { keystoneOptions } from "../identity/keystone-options.ts";
import { openNetworkOptions } from "../identity/open-network.ts";
import { type CorsSettings, DEFAULT_CORS_SETTINGS } from "./cors.ts";

/** Settings of the Placement API. Times in milliseconds. */
export interface PlacementSettings {
  readonly listen: HostPort;
  /** The cell for new root providers; the first cell when it is null. */
  readonly defaultCell: string | null;
  readonly generationStrategy: GenerationStrategy;
  readonly randomizeCandidates: boolean;
  /** Maximum number of candidates in one answer; -1 for no limit. */
  readonly candidatesMax: number;
  /** Maximum number of providers that one search tries. */
  readonly searchStepsMax: number;
  readonly freshnessDeadlineMs: number;
  readonly loadDeadlineMs: number;
  readonly bodyBytesMax: number;
  readonly pathBytesMax: number;
  readonly requestTimeoutMs: number;
}

/** The default settings for compositions in one process and for tests. */
export const DEFAULT_PLACEMENT_SETTINGS: PlacementSettings = {
  listen: { host: "127.0.0.1", port: 0 },
  defaultCell: null,
  generationStrategy: "depth-first",
  randomizeCandidates: false,
  candidatesMax: -1,
  searchStepsMax: 5_000_000,
  freshnessDeadlineMs: 5_000,
  loadDeadlineMs: 120_000,
  bodyBytesMax: 1 << 20,
  pathBytesMax: 1_024,
  requestTimeoutMs: 30_000,
};

/** The settings of the Placement API wherever it is served. Spread them into a declaration of settings. */
export const placementApiSettings = {
  enforceNewDefaults: setting(boolean, {
    about: "Placement policy: secure RBAC defaults instead of the legacy ones",
    default: "false",
  }),
  policyFile: optional(text(), { about: "Placement policy: YAML file of overrides, followed while running" }),
  corsAllowedOrigin: optional(listOf(text()), { about: "origins whose pages may call the Placement API, or *" }),
  corsAllowHeaders: setting(listOf(text()), {
    about: "request headers that such pages may set",
    default: DEFAULT_CORS_SETTINGS.allowHeaders.join(","),
  }),
  corsAllowMethods: setting(listOf(text()), {
    about: "methods that such pages may use",
    default: DEFAULT_CORS_SETTINGS.allowMethods.join(","),
  }),
  corsExposeHeaders: setting(listOf(text()), {
    about: "headers of answers that such pages may read",
    default: DEFAULT_CORS_SETTINGS.exposeHeaders.join(","),
  }),
  corsMaxAge: setting(integer({ min: 0, max: 86_400 }), {
    about: "seconds for which a browser may cache this; 0: not sent",
    default: String(DEFAULT_CORS_SETTINGS.maxAgeSeconds),
  }),
  corsAllowCredentials: setting(boolean, { about: "whether such pages may send credentials", default: "true" }),
  ...keystoneOptions,
};

/** Returns the settings of CORS, or null when browsers may not call from other sites. */
export function corsSettings(options: ValuesOf<typeof placementApiSettings>): CorsSettings | null {
  if (options.corsAllowedOrigin === null) return null;
  return {
    allowedOrigins: options.corsAllowedOrigin,
    allowHeaders: options.corsAllowHeaders,
    allowMethods: options.corsAllowMethods,
    exposeHeaders: options.corsExposeHeaders,
    maxAgeSeconds: options.corsMaxAge,
    allowCredentials: options.corsAllowCredentials,
  };
}

export const placementDeclaration = {
  command: "berth api --only placement",
  about: "Serves only the Placement API; needs only a database.",
  settings: {
    ...processSettings,
    only: setting(oneOf("placement"), { about: "serve only this API", default: "placement" }),
    listen: setting(hostPort, { about: "where to listen", default: "127.0.0.1:8778" }),
    databaseUrl: optional(postgresUrl, { about: "URL of the API database, whose cells are shown as one" }),
    cellDatabaseUrl: optional(postgresUrl, {
      about: "URL of one ledger's database, without an API database",
    }),
    dataDir: setting(directory, {
      about: "data directory of the embedded Postgres, if no database is given",
      default: ".berth",
    }),
    auth: setting(oneOf(...AUTH_KINDS), { about: "how callers are authenticated", default: "none" }),
    ...openNetworkOptions,
    metricsListen: setting(hostPort, { about: "address of /metrics, separate from the API's", default: "127.0.0.1:0" }),
    ...placementApiSettings,
    defaultCell: optional(text(), { about: "cell for new root providers" }),
    allocationCandidatesGenerationStrategy: setting(oneOf("depth-first", "breadth-first"), {
      about: "order of candidates: one tree after the other, or all trees in turn",
      default: "depth-first",
    }),
    randomizeAllocationCandidates: setting(boolean, { about: "candidates in random order", default: "false" }),
    maxAllocationCandidates: setting(integer({ min: -1, max: 10_000_000 }), {
      about: "maximum number of candidates in one answer; -1: all",
      default: "-1",
    }),
    searchStepsMax: setting(integer({ min: 1_000, max: 2_000_000_000 }), {
      about: "maximum number of providers that one search tries",
      default: "5000000",
    }),
    bodyBytesMax: setting(integer({ min: 1_024, max: 1 << 26 }), { about: "largest request body", default: "1048576" }),
    requestTimeout: setting(duration({ minMs: 100, maxMs: 600_000 }), {
      about: "maximum duration of one request",
      default: "30s",
    }),
  },
} as const;

export type PlacementOptions = ValuesOf<typeof placementDeclaration.settings>;

/** Derives the service's settings from the command line options. */
export function placementSettings(options: PlacementOptions): PlacementSettings {
  return Object.freeze({
    ...DEFAULT_PLACEMENT_SETTINGS,
    listen: options.listen,
    defaultCell: options.defaultCell,
    generationStrategy: options.allocationCandidatesGenerationStrategy,
    randomizeCandidates: options.randomizeAllocationCandidates,
    candidatesMax: options.maxAllocationCandidates,
    searchStepsMax: options.searchStepsMax,
    bodyBytesMax: options.bodyBytesMax,
    requestTimeoutMs: options.requestTimeout,
  });
}
