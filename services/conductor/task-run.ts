import type { AgentStream } from "../../core/agent/link.ts";
import type { ServerAttempt } from "../../core/stores/cell/quarantine.ts";
import type { FoundGuest } from "../../core/tasks/guest-fate.ts";
import type { Home } from "../../core/tasks/home.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { DestroyReport, Guest, HandOffProgress, OrderReport } from "../../proto/gen/berth/agent.ts";
import type { CellEvent } from "../../proto/gen/berth/cell.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ConductorEvents } from "./events.ts";
import type { GuestLooker } from "./guest-looker.ts";
import type { NeighbourNeeds } from "./neighbour-needs.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";
import type { StepCommitter } from "./step-committer.ts";
import type { TaskReleaser } from "./task-releaser.ts";

/** One task in progress, with the events that it reacts to. */
export interface TaskRun {
  readonly tenure: Tenure;
  /** The host that the task waits for, or null. */
  readonly host: string | null;
  hostConnected(): void;
  hostLost(): void;
  /** Handles an agent's answer to one of this task's orders. */
  ordered?(report: OrderReport): void;
  /** Handles an agent's report of how far one of this task's hand-overs has come. */
  progressed?(report: HandOffProgress): void;
  /** Handles an agent's answer to the destroy of one attempt. */
  destroyed?(report: DestroyReport): void;
  /** Stops the run, because this conductor may no longer do or write anything for the task. */
  abandon(): void;
}

/** The collaborators of a run. */
export interface RunPorts {
  readonly store: Pick<ConductorStore, "attempts" | "positions" | "holdsTask">;
  readonly commits: StepCommitter;
  readonly clock: Clock;
  readonly events: ConductorEvents;
  readonly settings: Pick<
    ConductorSettings,
    "conductorId" | "hostGraceMs" | "attemptTimeoutMs" | "unseenMs" | "unreadableMs"
  >;
  readonly releaser: TaskReleaser;
  readonly needs: NeighbourNeeds;
  streamOf(host: string): AgentStream | null;
  /** How many connections of agents were accepted so far. */
  arrivals(): number;
  /** The number of the connection that reaches the host, among all that were accepted. Null when the host is not connected. */
  arrivalOf(host: string): number | null;
  /** Asks the host for its guests. Resolves with null when the host is not connected or does not answer. */
  guestsOn(host: string): Promise<readonly Guest[] | null>;
  /** Whether another guest of the server is in quarantine, and may run, so that the guest of this attempt must not be started. */
  isBesideQuarantined(attempt: ServerAttempt): Promise<boolean>;
  /** The server's row, read in one batch with the rows of others. */
  homeOf(serverUuid: string): Promise<Home | null>;
  /**
   * Starts the guest, destroys it or leaves it alone, as the cell's database says. Its host must have just reported the guest's state.
   * Resolves when the host has answered or is lost.
   */
  settleGuest(guest: FoundGuest): Promise<void>;
  /** For guests without a recent report. It asks their host about them before anything is done to them. */
  readonly guests: Pick<GuestLooker, "look" | "mayDestroy" | "clear">;
  /** Shows people how far a move's hand-over has come. */
  noteTransfer(migrationUuid: string, report: HandOffProgress): void;
  tell(event: Pick<CellEvent, "kind" | "serverUuid" | "host" | "reason">): void;
  /** Called when the run's host has changed. `ended` is called when the run has ended. */
  moved(run: TaskRun, from: string | null): void;
  ended(run: TaskRun): void;
}
