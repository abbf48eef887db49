import type { TaskClaim } from "../../core/cell/task-claim.ts";
import type { Timer } from "../../runtime/clock.ts";
import type { RunPorts, TaskRun } from "./task-run.ts";

const REST_MS = 1_000;
const REST_MS_MAX = 60_000;

/** What an operation at a stage that this conductor does not know acts through. */
export interface UnknownStagePorts extends Pick<RunPorts, "clock" | "handOvers" | "ended"> {
  /** Takes the task once more, under a new epoch. */
  retake(taskId: string): Promise<void>;
}

/**
 * An operation at a stage that this conductor's version does not know: a newer conductor has brought it there. It is given to the other
 * conductors, and this one leaves it alone for a while that grows with each time that it has taken it. A conductor that is alone keeps it for
 * that while. It never ends here: nobody of this version can say what is true of the guests at that stage.
 */
export class UnknownStageRun implements TaskRun {
  readonly host = null;
  readonly claim: TaskClaim;
  readonly #ports: UnknownStagePorts;
  #timer: Timer | null = null;
  #abandoned = false;

  constructor(claim: TaskClaim, ports: UnknownStagePorts) {
    this.claim = claim;
    this.#ports = ports;
  }

  /** `takes`: how often this conductor has taken the task, with this time. Rejects when the conductor stops. */
  async begin(takes: number): Promise<void> {
    const restMs = Math.min(REST_MS * 2 ** Math.min(takes - 1, 10), REST_MS_MAX);
    const isPassed = await this.#ports.handOvers.pass(this.claim, restMs);
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
    // It only rejects when the conductor stops.
    this.#ports.retake(this.claim.taskId).catch(() => {});
  }

  #drop(): void {
    this.#ports.ended(this);
    this.abandon();
  }
}
