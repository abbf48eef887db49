/** Where a plan runs: against processes that the run starts itself, or against the containers of a deployment. */
export type ChaosTarget = "local" | "compose";

/** A request of a client to the public API. */
export type ClientOperation = "create" | "delete" | "show" | "list" | "action";

/**
 * Faults that a chaos plan can inject. Faults that the simulator has, too, have the same name there. `kill`: SIGKILL; `pause`: SIGSTOP,
 * then SIGCONT; `cut`: nothing passes a link; `slow`: everything on a link is delayed; `disk-full`: an agent's journal, or a NATS server's
 * streams, cannot be written; `fail-builds`: hosts fail a share of the builds; `kill-all`: all parts are killed at once; `redis-flush`:
 * Redis loses everything; `failover`: a cell's Postgres dies and its standby takes over.
 */
export const CHAOS_FAULTS = [
  "kill",
  "pause",
  "cut",
  "slow",
  "disk-full",
  "fail-builds",
  "kill-all",
  "redis-flush",
  "failover",
] as const;
export type ChaosFault = (typeof CHAOS_FAULTS)[number];

/** Faults that a history may name. `own` is a fault of a user's own suite, which its target describes. */
export type NotedFault = ChaosFault | "own";

/** A fault began. Each has exactly one `fault-ends` with its `faultId`, even when the run is broken off. */
export interface FaultBegins {
  readonly atMs: number;
  readonly who: "nemesis";
  readonly what: "fault-begins";
  readonly fault: NotedFault;
  /** Number of the fault, counted from 1. */
  readonly faultId: number;
  /** Description of the targets for people: `conductor-cell-1/2`, `schedulers → cell-1/nats`. Several are separated by commas. */
  readonly target: string;
  readonly detail?: string;
}

/** A fault is undone completely: what was killed is ready, and what was cut is joined. */
export interface FaultEnds {
  readonly atMs: number;
  readonly who: "nemesis";
  readonly what: "fault-ends";
  readonly fault: NotedFault;
  readonly faultId: number;
  readonly target: string;
  readonly detail?: string;
}

/** The first line of a history. */
export interface RunStarts {
  readonly atMs: number;
  readonly who: "runner";
  readonly what: "start";
  readonly plan: string;
  readonly target: ChaosTarget;
  readonly seed: number;
  /** Names of the processes and servers that the cloud consists of. */
  readonly parts: readonly string[];
}

/** A client sends a request. `id` numbers the requests of all clients from 1; the answer has the same one. */
export interface Invoked {
  readonly atMs: number;
  /** Name of the client, for example `client-3`. */
  readonly who: string;
  readonly what: "invoke";
  readonly op: ClientOperation;
  readonly id: number;
  /** UUID of the server, if the request names one. */
  readonly server?: string;
  /** Name of the action, for example `resize`, if the request is one. */
  readonly action?: string;
}

/**
 * The outcome of a request. `ok`: it was carried out (accepted, for a create). `refused`: the API said no, and nothing happened. `unknown`:
 * no answer says either, so it may or may not have happened.
 */
export interface Answered {
  readonly atMs: number;
  readonly who: string;
  readonly what: "ok" | "refused" | "unknown";
  readonly op: ClientOperation;
  readonly id: number;
  readonly server?: string;
  /** Milliseconds since the `invoke`. */
  readonly ms: number;
  /** HTTP status; absent when there was no answer at all. */
  readonly status?: number;
  readonly reason?: string;
  /** UUIDs that a list contains more than once; absent when there are none. */
  readonly twice?: readonly string[];
}

/** The API showed a server in this state for the first time. */
export interface StateSeen {
  readonly atMs: number;
  /** The client that created it. */
  readonly who: string;
  readonly what: "state";
  readonly server: string;
  readonly state: "ACTIVE" | "ERROR" | "DELETED";
  /** Milliseconds since the create, or for DELETED the delete, was accepted, to the accuracy of polling. */
  readonly ms: number;
  readonly host?: string;
  /** Number of build attempts. */
  readonly attempts?: number;
  /** Reasons of the failed attempts, oldest first. For ERROR, the server's fault comes last. */
  readonly reasons?: readonly string[];
}

/** Written after load and faults: whether everything that was accepted came to an end. */
export interface SettledRound {
  readonly atMs: number;
  readonly who: "runner";
  readonly what: "settled" | "not-settled";
  /** Number of accepted servers that are neither ACTIVE nor ERROR nor, if asked for, deleted. */
  readonly open: number;
  /** How long settling took, in milliseconds. */
  readonly ms: number;
}

/** Written after load and faults: a server, found by its name, of a create that was not accepted. */
export interface ServerFound {
  readonly atMs: number;
  readonly who: "runner";
  readonly what: "found";
  /** Id of the create request. */
  readonly id: number;
  readonly server: string;
}

/** A part ended without having been told to, and was started again. When the part is a server, the run fails. */
export interface PartDied {
  readonly atMs: number;
  readonly who: "runner";
  readonly what: "died";
  readonly part: string;
  /** How the part ended, and what it logged before. */
  readonly detail: string;
}

/** The audit's verdict on one law. */
export interface Verdict {
  readonly atMs: number;
  readonly who: "auditor";
  readonly what: "verdict";
  readonly law: 1 | 2 | 3 | 4 | 5 | 6;
  readonly holds: boolean;
  readonly violations: readonly string[];
}

/** The last line of a history. `failures` are broken laws and unmet expectations, for people. */
export interface RunEnds {
  readonly atMs: number;
  readonly who: "runner";
  readonly what: "end";
  readonly passed: boolean;
  readonly failures: readonly string[];
}

/**
 * One line of a chaos history (JSON lines). `atMs` counts from the start of the run. The simulator's histories begin with the same three
 * fields: atMs, who, what.
 */
export type HistoryLine =
  | RunStarts
  | Invoked
  | Answered
  | StateSeen
  | ServerFound
  | FaultBegins
  | FaultEnds
  | PartDied
  | SettledRound
  | Verdict
  | RunEnds;
