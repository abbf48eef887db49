/** Where a plan runs: against processes of its own, or against the containers of a deployment. */
export type ChaosTarget = "local" | "compose";

/** What a client asks of the public API. */
export type ClientOperation = "create" | "delete" | "show" | "list" | "action";

/**
 * Harm that a chaos plan can do. Where the simulator knows the same, it has the same name.
 * `kill`: SIGKILL; `pause`: SIGSTOP, then SIGCONT; `cut`: nothing passes a link; `slow`: everything on a link comes late;
 * `disk-full`: an agent's journal, or a NATS server's streams, cannot be written; `fail-builds`: hosts fail builds at a rate; `kill-all`: everything dies
 * at once; `redis-flush`: Redis forgets everything; `failover`: a cell's Postgres dies and its standby takes over.
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

/** What a history may name: `own` is harm that somebody's own suite does; its target says what. */
export type NotedFault = ChaosFault | "own";

/** A fault began; each has one `fault-ends` with its `faultId`, also when the run is broken off. */
export interface FaultBegins {
  readonly atMs: number;
  readonly who: "nemesis";
  readonly what: "fault-begins";
  readonly fault: NotedFault;
  /** Counts from 1. */
  readonly faultId: number;
  /** What it is done to, for people: `conductor-cell-1/2`, `schedulers → cell-1/nats`. Several are parted by commas. */
  readonly target: string;
  readonly detail?: string;
}

/** All is whole again: what was killed is ready, what was cut is joined. */
export interface FaultEnds {
  readonly atMs: number;
  readonly who: "nemesis";
  readonly what: "fault-ends";
  readonly fault: NotedFault;
  readonly faultId: number;
  readonly target: string;
  readonly detail?: string;
}

/** The first line. */
export interface RunStarts {
  readonly atMs: number;
  readonly who: "runner";
  readonly what: "start";
  readonly plan: string;
  readonly target: ChaosTarget;
  readonly seed: number;
  /** Processes and servers that the cloud is made of. */
  readonly parts: readonly string[];
}

/** A client sends a request. `id` counts the requests of all clients from 1; its answer has the same one. */
export interface Invoked {
  readonly atMs: number;
  /** `client-3` */
  readonly who: string;
  readonly what: "invoke";
  readonly op: ClientOperation;
  readonly id: number;
  /** Uuid, where the request names one. */
  readonly server?: string;
  /** Of an action: which one, `resize` for example. */
  readonly action?: string;
}

/**
 * What became of a request. `ok`: done (accepted, for a create); `refused`: the API said no, nothing has happened; `unknown`: no
 * answer that says either, so it may or may not have happened.
 */
export interface Answered {
  readonly atMs: number;
  readonly who: string;
  readonly what: "ok" | "refused" | "unknown";
  readonly op: ClientOperation;
  readonly id: number;
  readonly server?: string;
  /** Since `invoke`. */
  readonly ms: number;
  /** Of HTTP; absent when there was no answer at all. */
  readonly status?: number;
  readonly reason?: string;
  /** Of a list: uuids that it names more than once; absent: none. */
  readonly twice?: readonly string[];
}

/** A server was first seen in this state, by the API's word. */
export interface StateSeen {
  readonly atMs: number;
  /** The client that created it. */
  readonly who: string;
  readonly what: "state";
  readonly server: string;
  readonly state: "ACTIVE" | "ERROR" | "DELETED";
  /** Since the create, or for DELETED the delete, was accepted; to the accuracy of polling. */
  readonly ms: number;
  readonly host?: string;
  /** Builds tried. */
  readonly attempts?: number;
  /** Of attempts that failed, oldest first; for ERROR its fault comes last. */
  readonly reasons?: readonly string[];
}

/** After load and faults: whether everything accepted came to an end. */
export interface SettledRound {
  readonly atMs: number;
  readonly who: "runner";
  readonly what: "settled" | "not-settled";
  /** Accepted servers that are neither ACTIVE nor ERROR nor, if asked for, deleted. */
  readonly open: number;
  /** How long it took. */
  readonly ms: number;
}

/** After load and faults: what came of a create that no answer accepted, found by its name. */
export interface ServerFound {
  readonly atMs: number;
  readonly who: "runner";
  readonly what: "found";
  /** Of the create. */
  readonly id: number;
  readonly server: string;
}

/** A part ended without having been told to; it was started again. Of a server this fails the run. */
export interface PartDied {
  readonly atMs: number;
  readonly who: "runner";
  readonly what: "died";
  readonly part: string;
  /** How, and what it said before. */
  readonly detail: string;
}

/** What the audit says of one law. */
export interface Verdict {
  readonly atMs: number;
  readonly who: "auditor";
  readonly what: "verdict";
  readonly law: 1 | 2 | 3 | 4 | 5 | 6;
  readonly holds: boolean;
  readonly violations: readonly string[];
}

/** The last line. `failures`: laws broken and expectations not met, for people. */
export interface RunEnds {
  readonly atMs: number;
  readonly who: "runner";
  readonly what: "end";
  readonly passed: boolean;
  readonly failures: readonly string[];
}

/**
 * One line of a chaos history (JSON lines). `atMs` counts from the start of the run. The simulator's histories have the same
 * three fields first: atMs, who, what.
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
