import { loginOptions } from "../../adapters/openstack/login-options.ts";
import { neighbourOptions } from "../../adapters/openstack/neighbour-options.ts";
import { COMPLETION_PAUSE_MS } from "../../adapters/openstack/replacement-ender.ts";
import { postgresUrl } from "../../adapters/postgres/client/postgres-url.ts";
import { processSettings } from "../../runtime/lifecycle.ts";
import { boolean, duration, hostPort, integer, oneOf, text, url, urls } from "../../runtime/setting-kinds.ts";
import { optional, setting, type ValuesOf } from "../../runtime/settings.ts";

/** Settings of a conductor. All times are in milliseconds. */
export interface ConductorSettings {
  /** Name of the conductor's cell. */
  readonly cell: string;
  /** A new id for each process. The lease and the ownership of tasks are tied to it. */
  readonly conductorId: string;
  /** The conductor's name in logs and listings. */
  readonly name: string;
  /** A conductor that has not renewed its lease for this long counts as dead. */
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly sweepMs: number;
  /** A task that no conductor has taken this long after it was stored is swept up, because its message was lost. */
  readonly untakenMs: number;
  /** Interval of the agents' heartbeats. A connection is closed after three missing heartbeats. */
  readonly heartbeatMs: number;
  /** Hosts of agents that no conductor has seen for this long are down. */
  readonly unseenMs: number;
  /** The largest share of the cell's hosts (0 to 1) that may be down for silence alone. `downCountMin` hosts may be down in any case. */
  readonly downShareMax: number;
  readonly downCountMin: number;
  /** How long a build waits for a host that is not connected before it goes elsewhere. */
  readonly hostGraceMs: number;
  /** How long one attempt may take on its host. */
  readonly attemptTimeoutMs: number;
  /** How long Neutron may be silent before a build whose ports must be bound fails. */
  readonly portBindTimeoutMs: number;
  /** How long a prepared guest waits for its ports to become active in Neutron. 0 starts it without waiting. */
  readonly vifPluggingTimeoutMs: number;
  /** Whether a build fails on its host if its ports do not become active in time. */
  readonly vifPluggingIsFatal: boolean;
  /** Whether a live migration waits until Neutron has reported that its destination is connected. */
  readonly liveMigrationAwaitsVifs: boolean;
  /** How long Cinder may be silent, or take to make a volume, before a build whose volumes must be connected fails. */
  readonly volumeConnectTimeoutMs: number;
  /** How long Cinder may take to begin the completion of a migration that it was asked for. */
  readonly volumeEndPauseMs: number;
  /** How long Cinder may take to fill a volume with an image, for each GiB of the volume. Source: `reimage_timeout_per_gb` of Nova. */
  readonly reimageMsPerGib: number;
  /** How long a task that cannot be read waits before it is passed to another conductor or taken again. */
  readonly unreadableMs: number;
  /** Maximum number of messages taken from the queue and not yet acknowledged. */
  readonly messagesInFlightMax: number;
  /** Maximum number of tasks in progress. Further messages stay in the queue for other conductors. */
  readonly tasksMax: number;
  /** A resize or cold migration that has waited this long for its confirmation is confirmed automatically. 0 disables this. */
  readonly confirmAfterMs: number;
  /**
   * Accept agents whose certificate names no agent and no hosts. Older versions of `berth certs` made such certificates for a whole cell.
   */
  readonly allowCellWideCertificates: boolean;
  /** Interval of the search for allocations that belong to no server and no move. */
  readonly orphanLookMs: number;
  /** How many guests of servers unknown to the cell's database are destroyed per minute. The others wait. */
  readonly unknownDestroysPerMinute: number;
  /** How many hosts are compared with the database each second, in rotation. */
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
  portBindTimeoutMs: 120_000,
  vifPluggingTimeoutMs: 0,
  vifPluggingIsFatal: true,
  liveMigrationAwaitsVifs: true,
  volumeConnectTimeoutMs: 600_000,
  volumeEndPauseMs: COMPLETION_PAUSE_MS,
  reimageMsPerGib: 20_000,
  unreadableMs: 60_000,
  messagesInFlightMax: 1_000,
  tasksMax: 20_000,
  auditHostsPerSecond: 20,
  confirmAfterMs: 0,
  orphanLookMs: 60_000,
  allowCellWideCertificates: false,
} as const satisfies Omit<ConductorSettings, "cell" | "conductorId" | "name">;

/** All settings of a conductor process. They contain no address or password of anything above its cell (law 3). */
export const conductorDeclaration = {
  command: "berth conductor",
  about: "Carries out the tasks of one cell with the agents that connect to it.",
  settings: {
    ...processSettings,
    cell: setting(text({ pattern: /^[a-z0-9][a-z0-9-]{0,62}$/, allowed: "lower-case letters, digits and dashes" }), {
      about: "name of the cell",
    }),
    cellDatabaseUrl: setting(postgresUrl, { about: "the cell's database" }),
    natsUrl: setting(urls("nats", "tls"), { about: "URL of NATS with the user of the cell's conductors" }),
    listen: setting(hostPort, { about: "where agents connect", default: "127.0.0.1:8776" }),
    metricsListen: setting(hostPort, { about: "address of /healthz, /readyz and /metrics", default: "127.0.0.1:0" }),
    name: optional(text(), { about: "name of this conductor in logs; by default the address on which it listens" }),
    tlsCa: optional(text(), { about: "file of the CA that signs agents' certificates; with --tls-cert and --tls-key" }),
    tlsCert: optional(text(), { about: "file of this conductor's certificate" }),
    tlsKey: optional(text(), { about: "file of its key" }),
    plainText: setting(boolean, { about: "allow agents on other machines without TLS", default: "false" }),
    allowCellWideCertificates: setting(boolean, {
      about: "for upgrades: accept agents whose certificate does not name them and their hosts",
      default: "false",
    }),
    databaseConnections: setting(integer({ min: 2, max: 100 }), {
      about: "connections to the database",
      default: "10",
    }),
    lease: setting(duration({ minMs: 1_000, maxMs: 600_000 }), {
      about: "time after which other conductors take over the tasks of a silent conductor",
      default: "5s",
    }),
    hostGrace: setting(duration({ minMs: 0, maxMs: 600_000 }), {
      about: "how long a build waits for a host that is not connected",
      default: "3s",
    }),
    attemptTimeout: setting(duration({ minMs: 100, maxMs: 86_400_000 }), {
      about: "maximum duration of a build on one host",
      default: "10m",
    }),
    agentUnseen: setting(duration({ minMs: 1_000, maxMs: 3_600_000 }), {
      about: "time after which a host is down if no conductor has heard its agent",
      default: "5s",
    }),
    downShareMax: setting(integer({ min: 1, max: 100 }), {
      about:
        "maximum percentage of the cell's hosts that may be down because of silence alone; further silent hosts stay up and are reported",
      default: "25",
    }),
    downCountMin: setting(integer({ min: 1, max: 100_000 }), {
      about: "number of hosts that may be down because of silence alone, whatever their percentage",
      default: "10",
    }),
    unknownDestroys: setting(integer({ min: 0, max: 1_000_000 }), {
      about: "maximum number of guests of unknown servers that are destroyed in a minute; the others wait",
      default: "10",
    }),
    // The words are those of the api, so that both can be given the same value. Only ports in Neutron are bound.
    networks: setting(oneOf("none", "simple", "neutron"), {
      about: "the networks of the api; with neutron, the conductor binds the ports of its cell's servers in Neutron",
      default: "none",
    }),
    neutronUrl: optional(url("http", "https"), {
      about: "URL of Neutron for --networks neutron; by default the one in Keystone's catalogue",
    }),
    portBindTimeout: setting(duration({ minMs: 1_000, maxMs: 3_600_000 }), {
      about: "how long Neutron may be silent before a build whose ports must be bound fails",
      default: "2m",
    }),
    vifPluggingTimeout: setting(duration({ minMs: 0, maxMs: 3_600_000 }), {
      about:
        "how long a new guest waits for its ports to become active in Neutron before it starts; 0s: it does not wait",
      default: "0s",
    }),
    vifPluggingFatal: setting(boolean, {
      about: "whether a build fails on its host if its ports do not become active in time; otherwise the guest starts",
      default: "true",
    }),
    liveMigrationWaitForVifPlug: setting(boolean, {
      about:
        "whether a live migration waits for the event network-vif-plugged of its destination, for as long as --vif-plugging-timeout",
      default: "true",
    }),
    // Likewise, only volumes in Cinder are connected.
    volumes: setting(oneOf("none", "simple", "cinder"), {
      about:
        "the volumes of the api; with cinder, the conductor connects those of its cell's servers to their hosts in Cinder",
      default: "none",
    }),
    cinderUrl: optional(url("http", "https"), {
      about: "URL of Cinder for --volumes cinder; by default the one in Keystone's catalogue",
    }),
    volumeConnectTimeout: setting(duration({ minMs: 1_000, maxMs: 86_400_000 }), {
      about:
        "how long Cinder may be silent, or take to make a volume, before a build whose volumes must be connected fails",
      default: "10m",
    }),
    reimageTimeoutPerGib: setting(duration({ minMs: 1_000, maxMs: 86_400_000 }), {
      about:
        "how long Cinder may take to fill the boot volume of a server that is rebuilt, for each GiB of the volume, before the server becomes ERROR",
      default: "20s",
    }),
    ...loginOptions,
    ...neighbourOptions,
    resizeConfirm: setting(duration({ minMs: 0, maxMs: 90 * 86_400_000 }), {
      about: "time after which resizes and cold migrations are confirmed; 0s: never",
      default: "0s",
    }),
    tasksMax: setting(integer({ min: 1, max: 1_000_000 }), {
      about: "maximum number of concurrent tasks",
      default: "20000",
    }),
  },
} as const;

export type ConductorOptions = ValuesOf<typeof conductorDeclaration.settings>;

/** Converts the process's options into the service's settings. */
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
    portBindTimeoutMs: options.portBindTimeout,
    vifPluggingTimeoutMs: options.vifPluggingTimeout,
    vifPluggingIsFatal: options.vifPluggingFatal,
    liveMigrationAwaitsVifs: options.liveMigrationWaitForVifPlug,
    volumeConnectTimeoutMs: options.volumeConnectTimeout,
    reimageMsPerGib: options.reimageTimeoutPerGib,
    unseenMs: options.agentUnseen,
    downShareMax: options.downShareMax / 100,
    downCountMin: options.downCountMin,
    unknownDestroysPerMinute: options.unknownDestroys,
    tasksMax: options.tasksMax,
    confirmAfterMs: options.resizeConfirm,
    allowCellWideCertificates: options.allowCellWideCertificates,
  });
}
