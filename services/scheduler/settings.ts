import { postgresUrl } from "../../adapters/postgres/client/postgres-url.ts";
import { DEFAULT_SCHEDULING_SETTINGS, type SchedulingSettings } from "../../core/scheduling/scheduling-settings.ts";
import { processSettings } from "../../runtime/lifecycle.ts";
import { duration, hostPort, integer, listOf, text, url, urls } from "../../runtime/setting-kinds.ts";
import { type Declaration, optional, setting, type ValuesOf } from "../../runtime/settings.ts";

/** Settings of a scheduler. All times are in milliseconds. */
export interface SchedulerSettings {
  /** A new id for each process. */
  readonly schedulerId: string;
  /** Number of hosts that a build may try: the chosen one and its alternates. */
  readonly attemptsMax: number;
  /** Maximum number of requests that are taken from the queue and not finished. */
  readonly requestsInFlightMax: number;
  /** Maximum number of requests that are begun in one turn of the event loop, so that answers are not kept waiting. */
  readonly requestsPerTurn: number;
  /** Maximum number of items in one call of a store. */
  readonly batchMax: number;
  /** The chosen host is one of the `spread` best hosts whose weight is at most `spreadTolerance` below the best weight. */
  readonly spread: number;
  readonly spreadTolerance: number;
  /** A cell that leaves calls unanswered for this long gets no new servers until it answers. */
  readonly cellSilentMs: number;
  /** How long a cell may take to answer one call before the requests that wait for the answer are put off. */
  readonly cellAnswerMs: number;
  /** A cell whose database refused to write a dispatch, for example on a full disk, gets no new servers for this long. */
  readonly cellRefusedMs: number;
  /** How long a scheduler waits for a cell's view to catch up before it refuses a request or tries it again. */
  readonly seenDeadlineMs: number;
  /** While a cell does not answer, no request is refused with "No valid host" before it has reached this age. */
  readonly placeWithinMs: number;
  /** A request or move of this age that was tried several times is refused, and its fault says what prevented the placement. */
  readonly giveUpMs: number;
  /** A committed claim that the view has not shown after this time counts as seen. */
  readonly claimExpiryMs: number;
  readonly sweepMs: number;
  /** A sweep picks up requests whose row has not changed for this long. */
  readonly staleMs: number;
  readonly sweepLimit: number;
  /** How often the scheduler checks whether requests that were assigned to a cell have arrived there. */
  readonly arrivalSweepMs: number;
  /** A request is looked for in its cell when its row has not changed for this long since it was assigned. */
  readonly arrivalMs: number;
  readonly cellRefreshMs: number;
  /**
   * Where no fence is required, a host may be evacuated once its agent has been unseen for this long. The conductors use the same value
   * (`agentUnseen`).
   */
  readonly hostUnseenMs: number;
  readonly announceMs: number;
  readonly announceTtlMs: number;
  /** How often the scheduler reads the operators' settings. */
  readonly settingsPollMs: number;
  /** How long the decision on a call for several servers is kept. */
  readonly reservationsKeptMs: number;
  /** How long decisions are kept for explanations. The next setting limits their number. */
  readonly decisionsKeptMs: number;
  readonly decisionsMax: number;
  /** Maximum number of placements per second whose decisions are kept. Refusals do not count against this limit. */
  readonly decisionsPerSecond: number;
  /** What `decisionsPerSecond` allowed and nobody used is saved up to this number, so that a burst after a quiet time keeps all of its decisions. */
  readonly decisionsBurst: number;
  /** A kept decision is written within this time. A process that is killed loses those that wait. */
  readonly decisionFlushMs: number;
}

const own = DEFAULT_SCHEDULING_SETTINGS;

export const DEFAULT_SCHEDULER_SETTINGS = {
  attemptsMax: 3,
  requestsInFlightMax: 256,
  requestsPerTurn: 16,
  batchMax: 64,
  spread: own.hostSubsetSize,
  spreadTolerance: own.hostSubsetTolerance,
  settingsPollMs: 1_000,
  reservationsKeptMs: 86_400_000,
  decisionsKeptMs: 86_400_000,
  decisionsMax: 200_000,
  decisionsPerSecond: 25,
  decisionsBurst: 250,
  decisionFlushMs: 100,
  cellSilentMs: 2_000,
  cellRefusedMs: 10_000,
  cellAnswerMs: 5_000,
  seenDeadlineMs: 2_000,
  placeWithinMs: 60_000,
  giveUpMs: 600_000,
  claimExpiryMs: 10_000,
  sweepMs: 1_000,
  staleMs: 10_000,
  sweepLimit: 500,
  arrivalSweepMs: 30_000,
  arrivalMs: 60_000,
  cellRefreshMs: 5_000,
  hostUnseenMs: 5_000,
  announceMs: 1_000,
  announceTtlMs: 5_000,
} as const satisfies Omit<SchedulerSettings, "schedulerId">;

const defaults = DEFAULT_SCHEDULER_SETTINGS;

export const schedulerDeclaration = {
  command: "berth scheduler",
  about: "Places accepted requests: chooses a host and alternates, claims, hands the build to the cell.",
  settings: {
    ...processSettings,
    databaseUrl: setting(postgresUrl, { about: "API database" }),
    natsUrl: setting(urls("nats", "tls"), { about: "URL of NATS with the API tier's user" }),
    redisUrl: setting(url("redis", "rediss"), { about: "URL of the Redis through which schedulers exchange hints" }),
    listen: setting(hostPort, { about: "address of /healthz, /readyz and /metrics", default: "127.0.0.1:0" }),
    maxAttempts: setting(integer({ min: 1, max: 20 }), {
      about: "maximum number of hosts that a build may try",
      default: `${defaults.attemptsMax}`,
    }),
    requestsInFlight: setting(integer({ min: 1, max: 10_000 }), {
      about: "maximum number of requests that are placed concurrently",
      default: `${defaults.requestsInFlightMax}`,
    }),
    spread: setting(integer({ min: 1, max: 1_000 }), {
      about: "the host is chosen at random among this number of best hosts, if they are about equally good",
      default: `${defaults.spread}`,
    }),
    filters: optional(listOf(text()), {
      about: "modules with your own host filters; all schedulers and apis need the same",
    }),
    placeWithin: setting(duration({ minMs: 1_000, maxMs: 86_400_000 }), {
      about: "how long a request waits for a silent cell before it is refused",
      default: `${defaults.placeWithinMs / 1_000}s`,
    }),
    keepReservations: setting(duration({ minMs: 3_600_000, maxMs: 366 * 86_400_000 }), {
      about: "how long the decision about a call for several servers is kept",
      default: `${defaults.reservationsKeptMs / 3_600_000}h`,
    }),
    keepDecisions: setting(duration({ minMs: 60_000, maxMs: 366 * 86_400_000 }), {
      about: "how long the reasons of decisions are kept for `berth explain`",
      default: `${defaults.decisionsKeptMs / 3_600_000}h`,
    }),
    keepDecisionsMax: setting(integer({ min: 1, max: 100_000_000 }), {
      about: "maximum number of kept decisions, about 1 KB each",
      default: `${defaults.decisionsMax}`,
    }),
  },
} as const satisfies Declaration<Record<string, ReturnType<typeof setting<unknown>>>>;

export type SchedulerOptions = ValuesOf<typeof schedulerDeclaration.settings>;

/** Derives the service's settings from the command line options. */
export function schedulerSettings(options: SchedulerOptions, schedulerId: string): SchedulerSettings {
  return {
    ...DEFAULT_SCHEDULER_SETTINGS,
    schedulerId,
    attemptsMax: options.maxAttempts,
    requestsInFlightMax: options.requestsInFlight,
    spread: options.spread,
    placeWithinMs: options.placeWithin,
    reservationsKeptMs: options.keepReservations,
    decisionsKeptMs: options.keepDecisions,
    decisionsMax: options.keepDecisionsMax,
  };
}

/** Expresses the settings that this process was started with in the form that operators change. Settings of operators override them. */
export function ownSchedulingSettings({ spread, spreadTolerance }: SchedulerSettings): SchedulingSettings {
  return { ...DEFAULT_SCHEDULING_SETTINGS, hostSubsetSize: spread, hostSubsetTolerance: spreadTolerance };
}
