import type { ChaosCloud } from "../chaos-cloud.ts";
import type { Checker } from "../checkers/checker.ts";
import type { HistoryLine } from "../history-line.ts";
import type { Generator, WantedServer } from "./generators.ts";
import type { Nemesis } from "./nemesis.ts";

/** What a suite needs of a cloud: any ChaosCloud has it, and an InProcessCloud. */
export interface SuiteCloud extends Pick<ChaosCloud, "target" | "apiUrls" | "audit"> {
  readonly parts: readonly { readonly name: string }[];
}

/** Load, faults, and what must be true of what came of them. Times in milliseconds. */
export interface Suite<Cloud extends SuiteCloud> {
  /** Stands above the report. */
  readonly name: string;
  readonly cloud: Cloud;
  readonly generator: Generator;
  /** Clients that make requests at the same time; 4 unless given. */
  readonly clients?: number;
  readonly nemesis?: Nemesis<Cloud>;
  /** Beside those that hold for every run. */
  readonly checkers?: readonly Checker[];
  /** The load ends after so long at the latest; 60 s unless given. */
  readonly withinMs?: number;
  /** How long everything accepted may then take to come to an end; 60 s unless given. */
  readonly settleMs?: number;
  /** How long a client waits for an answer; 10 s unless given. */
  readonly timeoutMs?: number;
  /** Decides all that is random in load and faults; 1 unless given. */
  readonly seed?: number;
}

/** A server that was accepted, and what it came to. */
export interface SuiteServer {
  readonly uuid: string;
  readonly wanted: WantedServer;
  readonly state: "open" | "ACTIVE" | "ERROR" | "DELETED";
  /** Where it was when it became ACTIVE. */
  readonly host: string | null;
  /** Of a server in ERROR. */
  readonly fault: string | null;
  /** Somebody asked for its end. */
  readonly deleted: boolean;
}

export interface SuiteResult {
  /** Laws that were broken and all that checkers found, for people; empty: all is well. */
  readonly failures: readonly string[];
  /** In the order in which they were asked for, as they were before the suite removed them. */
  readonly servers: readonly SuiteServer[];
  readonly history: readonly HistoryLine[];
}
