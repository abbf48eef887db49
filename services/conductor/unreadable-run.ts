import type { Tenure } from "../../core/tasks/tenure.ts";
import { EventKind } from "../../proto/gen/berth/cell.ts";
import type { Timer } from "../../runtime/clock.ts";
import type { RunPorts, TaskRun } from "./task-run.ts";

/** How often a conductor takes a task that it cannot read. Other conductors may take the task in between. */
const TAKES_MAX = 5;
/** The longest time for which it leaves the task to other conductors. */
const REST_MS = 10_000;

/** The collaborators of the run of an unreadable task. */
export interface UnreadablePorts extends RunPorts {
  /** Takes the task once more, under a new epoch. */
  retake(taskId: string): Promise<void>;
}

/**
 * A task whose payload this conductor cannot read, because it is damaged or of a newer version. For a while the task is passed to other
 * conductors repeatedly, so that one of a newer version can take it during an upgrade. Then the task ends with its server in ERROR, since
 * every request must end (law 5).
 */
export class UnreadableRun implements TaskRun {
  readonly host = null;
  readonly tenure: Tenure;
  readonly #ports: UnreadablePorts;
  readonly #reason: string;
  #timer: Timer | null = null;
  #abandoned = false;

  constructor(tenure: Omit<Tenure, "serverUuid">, reason: string, ports: UnreadablePorts) {
    this.tenure = { ...tenure, serverUuid: "" };
    this.#reason = reason;
    this.#ports = ports;
  }

  /** `takes` counts how often this conductor has taken the task, including this time. */
  begin(takes: number): void {
    const { clock, settings } = this.#ports;
    const next = () => (takes >= TAKES_MAX ? this.#end() : this.#pass());
    this.#timer = clock.setTimer(settings.unreadableMs, () => {
      // The promise rejects only when the conductor stops.
      next().catch(() => this.abandon());
    });
  }

  hostConnected(): void {}

  hostLost(): void {}

  abandon(): void {
    this.#abandoned = true;
    this.#timer?.cancel();
  }

  /** Passes the task to another conductor, or takes it again when there is none. */
  async #pass(): Promise<void> {
    const { releaser, retake, settings } = this.#ports;
    const isPassed = await releaser.pass(this.tenure, Math.min(REST_MS, settings.unreadableMs));
    if (this.#abandoned) return;
    this.#drop();
    if (!isPassed) await retake(this.tenure.taskId);
  }

  async #end(): Promise<void> {
    const { commits, events, tell } = this.#ports;
    const { taskId, epoch } = this.tenure;
    const reason =
      `No conductor of the cell can read the task of this server (task ${taskId}: ${this.#reason}). ` +
      "Its allocations are kept; delete the server to release them.";
    const outcome = await commits.endUnreadable({ taskId, epoch, reason });
    if (this.#abandoned) return;
    this.#drop();
    if (outcome.kind !== "ended") return;
    events.unreadableEnded(taskId, outcome.serverUuid, this.#reason);
    tell({ kind: EventKind.EVENT_KIND_SERVER_ERROR, serverUuid: outcome.serverUuid, host: "", reason });
  }

  #drop(): void {
    this.#ports.ended(this);
    this.abandon();
  }
}
