import type { Tenure } from "../../core/tasks/tenure.ts";
import type { Timer } from "../../runtime/clock.ts";
import type { RunPorts, TaskRun } from "./task-run.ts";

const REST_MS = 1_000;
const REST_MS_MAX = 60_000;

/** The collaborators of an operation's run at an unknown stage. */
export interface UnknownStagePorts extends Pick<RunPorts, "clock" | "releaser" | "ended"> {
  /** Takes the task once more, under a new epoch. */
  retake(taskId: string): Promise<void>;
}

/**
 * An operation at a stage that this conductor's version does not know, because a newer conductor brought it there. The task is passed to
 * the other conductors, and this one leaves it alone for a time that grows with each take. If there is no other conductor, this one keeps
 * the task for that time. The operation never ends here, because this version cannot say what is true of the guests at that stage.
 */
export class UnknownStageRun implements TaskRun {
  readonly host = null;
  readonly tenure: Tenure;
  readonly #ports: UnknownStagePorts;
  #timer: Timer | null = null;
  #abandoned = false;

  constructor(tenure: Tenure, ports: UnknownStagePorts) {
    this.tenure = tenure;
    this.#ports = ports;
  }

  /** `takes` counts how often this conductor has taken the task, including this time. Rejects when the conductor stops. */
  async begin(takes: number): Promise<void> {
    const restMs = Math.min(REST_MS * 2 ** Math.min(takes - 1, 10), REST_MS_MAX);
    const isPassed = await this.#ports.releaser.pass(this.tenure, restMs);
    if (this.#abandoned) return;
    if (isPassed) this.#drop();
    else this.#timer = this.#ports.clock.setTimer(restMs, () => this.#takeAgain());
  }

  hostConnected(): void {}

  hostLost(): void {}

  abandon(): void {
    this.#abandoned = true;
    this.#timer?.cancel();
  }

  #takeAgain(): void {
    this.#drop();
    // The promise rejects only when the conductor stops.
    this.#ports.retake(this.tenure.taskId).catch(() => {});
  }

  #drop(): void {
    this.#ports.ended(this);
    this.abandon();
  }
}
