import type { AgentStream } from "../../core/agent/link.ts";
import type { Home } from "../../core/cell/cell-store.ts";
import type { TaskClaim } from "../../core/cell/task-claim.ts";
import type { FoundGuest } from "../../core/tasks/guest-fate.ts";
import type { DestroyReport, Guest, OrderReport } from "../../proto/gen/berth/agent.ts";
import type { CellEvent } from "../../proto/gen/berth/cell.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { StepCommitter } from "./commit-steps.ts";
import type { ConductorEvents } from "./events.ts";
import type { HandOvers } from "./hand-over.ts";
import type { GuestLooker } from "./look-at-guests.ts";
import type { ConductorStore } from "./ports.ts";
import type { ConductorSettings } from "./settings.ts";

/** What a task in the works is told by the world around it. */
export interface TaskRun {
  readonly claim: TaskClaim;
  /** The host that it waits for; null: none. */
  readonly host: string | null;
  hostConnected(): void;
  hostLost(): void;
  /** An agent's answer to one of this task's orders. */
  ordered?(report: OrderReport): void;
  /** An agent's answer to the destroy of one attempt. */
  destroyed?(report: DestroyReport): void;
  /** It is no longer ours to carry on: nothing more is done or written for it here. */
  abandon(): void;
}

/** What a run acts through. */
export interface RunPorts {
  readonly store: Pick<ConductorStore, "attempts" | "positions">;
  readonly commits: StepCommitter;
  readonly clock: Clock;
  readonly events: ConductorEvents;
  readonly settings: Pick<ConductorSettings, "hostGraceMs" | "attemptTimeoutMs" | "unseenMs" | "unreadableMs">;
  readonly handOvers: HandOvers;
  streamOf(host: string): AgentStream | null;
  /** What the host says now that it has; null: it is not connected, or does not answer. */
  guestsOn(host: string): Promise<readonly Guest[] | null>;
  /** The server's row, read together with others'. */
  homeOf(serverUuid: string): Promise<Home | null>;
  /**
   * Starts it, destroys it or leaves it alone, as the cell's database has it: a guest whose host has just said what it is. Resolves when that was
   * answered, or its host is lost.
   */
  settleGuest(guest: FoundGuest): Promise<void>;
  /** Guests that nobody has spoken of lately are looked at before anything is done to them. */
  readonly guests: Pick<GuestLooker, "look" | "mayDestroy" | "clear">;
  tell(event: Pick<CellEvent, "kind" | "serverUuid" | "host" | "reason">): void;
  /** The run's host changed, or the run ended (`ended`). */
  moved(run: TaskRun, from: string | null): void;
  ended(run: TaskRun): void;
}
