import type { Way } from "./chaos-cloud.ts";
import type { ChaosFault } from "./history-line.ts";

/** A moment of a round: so long after its begin, or a share of its duration. */
export type Moment = { readonly ms: number } | { readonly share: number };

/** What a fault is done to, in a plan's words: `conductor`, `agent@cell1`, `cell1-nats`; `above -> cell1` for links. */
export type FaultTarget =
  | { readonly kind: "parts"; readonly which: string }
  | { readonly kind: "links"; readonly from: string; readonly to: string }
  | { readonly kind: "none" };

/** One line of a nemesis' schedule. */
export interface FaultStep {
  readonly fault: ChaosFault;
  readonly target: FaultTarget;
  /** How many of those that the target names, at random; for links: of those they come from. */
  readonly pick: number | "all";
  readonly at: Moment;
  /** How long it lasts each time. */
  readonly for: Moment;
  /** Once unless given. */
  readonly everyMs: number | null;
  /** The last of several begins before; the end of the round unless given. */
  readonly until: Moment | null;
  readonly way: Way;
  /** Of `slow`. */
  readonly delayMs: number;
  /** Of `fail-builds`. */
  readonly share: number;
}

/** How large the local cloud is; a deployment in containers is as large as it is. */
export interface CloudShape {
  readonly cells: number;
  readonly apis: number;
  readonly schedulers: number;
  /** Of each cell. */
  readonly conductors: number;
  readonly agents: number;
  /** Of each agent. */
  readonly hosts: number;
  /** Whether each cell's Postgres has a synchronous standby. */
  readonly standbys: boolean;
}

/** What clients do. */
export interface LoadPlan {
  readonly clients: number;
  /** Servers that all clients together ask for in a second, whatever becomes of them; null: each asks for the next by `next`. */
  readonly rate: number | null;
  /** When a client asks for its next server: the last one has ended, or only been accepted. */
  readonly next: "ended" | "accepted";
  /** Servers asked for in a round at most. */
  readonly creates: number | null;
  /** Whether a client that was not told that its server is accepted asks for another one in its place. */
  readonly retry: boolean;
  /** Share of the servers that are deleted; half of those while they may still be building. */
  readonly deletes: number;
  /** Share of the servers that clients resize, move, stop, pause and shelve once they are ACTIVE, again and again until the load ends. */
  readonly operations: number;
  /** How long a build takes on its host. */
  readonly buildMs: number;
  /** How long a client waits for an answer. */
  readonly timeoutMs: number;
}

/** What must be true in the end, beside the laws. Null: nothing is asked. */
export interface Expectation {
  /** Servers in ERROR at most. */
  readonly errors: number | null;
  /** Share of what was accepted, and not deleted, that must be ACTIVE. */
  readonly active: number | null;
  /** Requests at most that got no answer which says what happened. */
  readonly unknown: number | null;
  /** From acceptance to ACTIVE, for the slowest. */
  readonly slowestMs: number | null;
  /**
   * While a cell is cut off from above: its builds run on within so long after the cut began, and some servers that are asked for
   * meanwhile become ACTIVE elsewhere before it ends.
   */
  readonly aloneMs: number | null;
}

/** Load and faults, then rest. */
export interface Round {
  /** Of several; empty for the only one. */
  readonly name: string;
  readonly nemesis: readonly FaultStep[];
}

export interface Plan {
  readonly name: string;
  readonly about: string;
  /** Of each round's load and faults. */
  readonly durationMs: number;
  /** What has not ended so long after load and faults is stuck. */
  readonly settleMs: number;
  readonly cloud: CloudShape;
  readonly load: LoadPlan;
  readonly rounds: readonly Round[];
  readonly expect: Expectation;
}
