import { postgresUrl } from "../../adapters/postgres/postgres-url.ts";
import { processSettings } from "../../runtime/lifecycle.ts";
import { boolean, duration, hostPort, integer, text, urls } from "../../runtime/setting-kinds.ts";
import { optional, setting, type ValuesOf } from "../../runtime/settings.ts";

/** How a conductor behaves. All times in milliseconds. */
export interface ConductorSettings {
  /** The cell that it serves. */
  readonly cell: string;
  /** New for each process: a lease and the ownership of tasks go by it. */
  readonly conductorId: string;
  /** For operators. */
  readonly name: string;
  /** A conductor that did not renew for so long is taken for dead. */
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly sweepMs: number;
  /** A task that nobody has taken so long after it was stored is swept up: its message was lost. */
  readonly untakenMs: number;
  /** Agents send a heartbeat this often; after three silent ones they are given up. */
  readonly heartbeatMs: number;
  /** Hosts of agents that no conductor has seen for so long are down. */
  readonly unseenMs: number;
  /** No larger share of the cell's hosts (0 to 1) is down for silence alone at a time; in a small cell so many may be. */
  readonly downShareMax: number;
  readonly downCountMin: number;
  /** How long a host that is not connected may take to connect before a build goes elsewhere. */
  readonly hostGraceMs: number;
  /** How long one attempt may take on its host. */
  readonly attemptTimeoutMs: number;
  /** How long a task that cannot be read rests before it is given to another conductor, or taken once more. */
  readonly unreadableMs: number;
  /** Messages taken from the queue and not acknowledged yet. */
  readonly messagesInFlightMax: number;
  /** Tasks in the works; beyond them messages stay in the queue, for other conductors. */
  readonly tasksMax: number;
  /** A resize or cold migration that has waited so long is confirmed; 0: never. */
  readonly confirmAfterMs: number;
  /** Accept agents whose certificate names no agent and no hosts, as `berth certs` made them once for a whole cell. */
  readonly allowCellWideCertificates: boolean;
  /** How often it is looked for allocations that belong to nobody. */
  readonly strayLookMs: number;
  /** Guests of servers that the cell's database does not know: so many are destroyed in a minute; the others wait. */
  readonly unknownDestroysPerMinute: number;
  /** Hosts whose guests are compared with the database each second, in turn. */
  readonly auditHostsPerSecond: number;
}

export const CONDUCTOR_DEFAULTS = {
  leaseMs: 5_000,
  renewMs: 1_000,
  sweepMs: 1_000,
  untakenMs: 2_000,
  heartbeatMs: 1_000,
  unseenMs: 5_000,
  unknownDestroysPerMinute: 10,
  downShareMax: 0.25,
  downCountMin: 10,
  hostGraceMs: 3_000,
  attemptTimeoutMs: 600_000,
  unreadableMs: 60_000,
  messagesInFlightMax: 1_000,
  tasksMax: 20_000,
  auditHostsPerSecond: 20,
  confirmAfterMs: 0,
  strayLookMs: 60_000,
  allowCellWideCertificates: false,
} as const satisfies Omit<ConductorSettings, "cell" | "conductorId" | "name">;

/** All that a conductor is told; no address or password of anything above its cell (law 3). */
export const conductorDeclaration = {
  command: "berth conductor",
  about: "Carries through the tasks of one cell, with the agents that connect to it.",
  settings: {
    ...processSettings,
    cell: setting(text({ pattern: /^[a-z0-9][a-z0-9-]{0,62}$/, allowed: "lower-case letters, digits and dashes" }), {
      about: "name of the cell",
    }),
    cellDatabaseUrl: setting(postgresUrl, { about: "the cell's database" }),
    natsUrl: setting(urls("nats", "tls"), { about: "NATS with the user of the cell's conductors" }),
    listen: setting(hostPort, { about: "where agents connect", default: "127.0.0.1:8776" }),
    metricsListen: setting(hostPort, { about: "where /healthz, /readyz and /metrics are", default: "127.0.0.1:0" }),
    name: optional(text(), { about: "how this conductor is called in logs; the address it listens on unless given" }),
    tlsCa: optional(text(), { about: "file of the CA that signs agents' certificates; with --tls-cert and --tls-key" }),
    tlsCert: optional(text(), { about: "file of this conductor's certificate" }),
    tlsKey: optional(text(), { about: "file of its key" }),
    plainText: setting(boolean, { about: "allow agents of other machines without TLS", default: "false" }),
    allowCellWideCertificates: setting(boolean, {
      about: "while upgrading: accept agents whose certificate does not name them and their hosts",
      default: "false",
    }),
    databaseConnections: setting(integer({ min: 2, max: 100 }), {
      about: "connections to the database",
      default: "10",
    }),
    lease: setting(duration({ minMs: 1_000, maxMs: 600_000 }), {
      about: "others take over the tasks of a conductor that was silent for so long",
      default: "5s",
    }),
    hostGrace: setting(duration({ minMs: 0, maxMs: 600_000 }), {
      about: "how long a host that is not connected may take before a build goes elsewhere",
      default: "3s",
    }),
    attemptTimeout: setting(duration({ minMs: 100, maxMs: 86_400_000 }), {
      about: "how long one host may take for a build",
      default: "10m",
    }),
    agentUnseen: setting(duration({ minMs: 1_000, maxMs: 3_600_000 }), {
      about: "hosts are down when no conductor has heard of their agent for so long",
      default: "5s",
    }),
    downShareMax: setting(integer({ min: 1, max: 100 }), {
      about:
        "percent of the cell's hosts that may be down for silence alone; more that fall silent stay up, and are reported",
      default: "25",
    }),
    downCountMin: setting(integer({ min: 1, max: 100_000 }), {
      about: "so many hosts may be down for silence alone, whatever their share is",
      default: "10",
    }),
    unknownDestroys: setting(integer({ min: 0, max: 1_000_000 }), {
      about: "guests of unknown servers that are destroyed in a minute; the others wait",
      default: "10",
    }),
    resizeConfirm: setting(duration({ minMs: 0, maxMs: 90 * 86_400_000 }), {
      about: "resizes and cold migrations that have waited so long are confirmed; 0s: never",
      default: "0s",
    }),
    tasksMax: setting(integer({ min: 1, max: 1_000_000 }), { about: "tasks in the works", default: "20000" }),
  },
} as const;

export type ConductorOptions = ValuesOf<typeof conductorDeclaration.settings>;

/** What a process was given, as the service wants it. */
export function conductorSettings(options: ConductorOptions, conductorId: string): ConductorSettings {
  return Object.freeze({
    ...CONDUCTOR_DEFAULTS,
    cell: options.cell,
    conductorId,
    name: options.name ?? `${options.listen.host}:${options.listen.port}`,
    leaseMs: options.lease,
    renewMs: Math.min(CONDUCTOR_DEFAULTS.renewMs, options.lease / 4),
    hostGraceMs: options.hostGrace,
    attemptTimeoutMs: options.attemptTimeout,
    unseenMs: options.agentUnseen,
    downShareMax: options.downShareMax / 100,
    downCountMin: options.downCountMin,
    unknownDestroysPerMinute: options.unknownDestroys,
    tasksMax: options.tasksMax,
    confirmAfterMs: options.resizeConfirm,
    allowCellWideCertificates: options.allowCellWideCertificates,
  });
}
