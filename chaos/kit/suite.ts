import type { ChaosCloud } from "../chaos-cloud.ts";
import type { Checker } from "../checkers/checker.ts";
import type { HistoryLine } from "../history-line.ts";
import type { Generator, WantedServer } from "./generators.ts";
import type { Nemesis } from "./nemesis.ts";

/** The functions of a cloud that a suite needs. Every ChaosCloud has them, and so does an InProcessCloud. */
export interface SuiteCloud extends Pick<ChaosCloud, "target" | "apiUrls" | "audit"> {
  readonly parts: readonly { readonly name: string }[];
}

/** Load, faults, and the conditions that must hold afterwards. Times are in milliseconds. */
export interface Suite<Cloud extends SuiteCloud> {
  /** Title of the report. */
  readonly name: string;
  readonly cloud: Cloud;
  readonly generator: Generator;
  /** Number of clients that make requests at the same time; 4 by default. */
  readonly clients?: number;
  readonly nemesis?: Nemesis<Cloud>;
  /** Checkers in addition to the standard ones. */
  readonly checkers?: readonly Checker[];
  /** Maximum duration of the load; 60 s by default. */
  readonly withinMs?: number;
  /** How long everything accepted may then take to come to an end; 60 s by default. */
  readonly settleMs?: number;
  /** How long a client waits for an answer; 10 s by default. */
  readonly timeoutMs?: number;
  /** Decides everything that is random in load and faults; 1 by default. */
  readonly seed?: number;
}

/** A server that was accepted, and its final state. */
export interface SuiteServer {
  readonly uuid: string;
  readonly wanted: WantedServer;
  readonly state: "open" | "ACTIVE" | "ERROR" | "DELETED";
  /** Host of the server when it became ACTIVE. */
  readonly host: string | null;
  /** Fault message of a server in ERROR. */
  readonly fault: string | null;
  /** Whether somebody asked for its deletion. */
  readonly deleted: boolean;
}

export interface SuiteResult {
  /** Broken laws and findings of checkers; empty when all is well. */
  readonly failures: readonly string[];
  /** The servers in the order in which they were asked for, as they were before the suite removed them. */
  readonly servers: readonly SuiteServer[];
  readonly history: readonly HistoryLine[];
}
