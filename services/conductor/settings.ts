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
  /** How long a host that is not connected may take to connect before a build goes elsewhere. */
  readonly hostGraceMs: number;
  /** How long one attempt may take on its host. */
  readonly attemptTimeoutMs: number;
  /** Messages taken from the queue and not acknowledged yet. */
  readonly messagesInFlightMax: number;
  /** Tasks in the works; beyond them messages stay in the queue, for other conductors. */
  readonly tasksMax: number;
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
  hostGraceMs: 3_000,
  attemptTimeoutMs: 600_000,
  messagesInFlightMax: 1_000,
  tasksMax: 20_000,
  auditHostsPerSecond: 20,
} as const satisfies Omit<ConductorSettings, "cell" | "conductorId" | "name">;
