import type { Way } from "./chaos-cloud.ts";
import type { ChaosFault } from "./history-line.ts";

/** A moment of a round, given as milliseconds after its beginning or as a share of its duration. */
export type Moment = { readonly ms: number } | { readonly share: number };

/** The target of a fault, in a plan's words: `conductor`, `agent@cell1`, `cell1-nats`; `above -> cell1` for links. */
export type FaultTarget =
  | { readonly kind: "parts"; readonly which: string }
  | { readonly kind: "links"; readonly from: string; readonly to: string }
  | { readonly kind: "none" };

/** One line of a nemesis' schedule. */
export interface FaultStep {
  readonly fault: ChaosFault;
  readonly target: FaultTarget;
  /** How many of the matching targets are picked, at random. For links, how many of the parts that they come from. */
  readonly pick: number | "all";
  readonly at: Moment;
  /** How long the fault lasts each time. */
  readonly for: Moment;
  /** Interval of repetition; null when the fault happens once. */
  readonly everyMs: number | null;
  /** End of the repetition: the last fault begins before it. The end of the round by default. */
  readonly until: Moment | null;
  readonly way: Way;
  /** Delay of `slow`, in milliseconds. */
  readonly delayMs: number;
  /** Share of the builds that `fail-builds` has fail. */
  readonly share: number;
}

/** The size of the local cloud. It does not apply to a deployment in containers. */
export interface CloudShape {
  readonly cells: number;
  readonly apis: number;
  readonly schedulers: number;
  /** Number of conductors in each cell. */
  readonly conductors: number;
  readonly agents: number;
  /** Number of hosts of each agent. */
  readonly hosts: number;
  /** Whether each cell's Postgres has a synchronous standby. */
  readonly standbys: boolean;
}

/** The requests of a plan's clients. */
export interface LoadPlan {
  readonly clients: number;
  /**
   * Number of servers a second that all clients together ask for, whatever becomes of them. Null when each client asks for the next one
   * according to `next`.
   */
  readonly rate: number | null;
  /** When a client asks for its next server: after the last one ended, or as soon as it was accepted. */
  readonly next: "ended" | "accepted";
  /** Maximum number of servers asked for in a round. */
  readonly creates: number | null;
  /** Whether a client whose create was not accepted asks for another server in its place. */
  readonly retry: boolean;
  /** Share of the servers that are deleted, half of them while they may still be building. */
  readonly deletes: number;
  /** Share of the servers that clients resize, move, stop, pause and shelve, from ACTIVE until the load ends. */
  readonly operations: number;
  /** How long a build takes on its host. */
  readonly buildMs: number;
  /** How long a client waits for an answer. */
  readonly timeoutMs: number;
}

/** Conditions at the end of a run, in addition to the laws. Fields that are null are not checked. */
export interface Expectation {
  /** Maximum number of servers in ERROR. */
  readonly errors: number | null;
  /** Minimum share of the accepted and not deleted servers that must be ACTIVE. */
  readonly active: number | null;
  /** Maximum number of requests whose outcome is unknown. */
  readonly unknown: number | null;
  /** Maximum time from acceptance to ACTIVE of the slowest server. */
  readonly slowestMs: number | null;
  /**
   * Applies to a cell that is cut off from the API tier. Builds must still end there within this time after the cut began, and some
   * servers that are asked for meanwhile must become ACTIVE in other cells before the cut ends.
   */
  readonly aloneMs: number | null;
}

/** One round of a plan: load and faults, then rest. */
export interface Round {
  /** Name of the round; empty when there is only one. */
  readonly name: string;
  readonly nemesis: readonly FaultStep[];
}

export interface Plan {
  readonly name: string;
  readonly about: string;
  /** Duration of each round's load and faults. */
  readonly durationMs: number;
  /** Time for everything to end after load and faults; requests that have not ended then are stuck. */
  readonly settleMs: number;
  readonly cloud: CloudShape;
  readonly load: LoadPlan;
  readonly rounds: readonly Round[];
  readonly expect: Expectation;
}
