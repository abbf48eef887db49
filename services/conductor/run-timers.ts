import type { Clock, Timer } from "../../runtime/clock.ts";

/** The two timers of a build or an operation: a pause before something is tried again or given up, and a deadline for the work of a host. */
export class RunTimers {
  readonly #clock: Pick<Clock, "setTimer">;
  #waiting: Timer | null = null;
  #deadline: Timer | null = null;
  #setAgain = (): void => {};

  constructor(clock: Pick<Clock, "setTimer">) {
    this.#clock = clock;
  }

  /** The present pause, or null. Each pause has a timer of its own. */
  get waiting(): Timer | null {
    return this.#waiting;
  }

  /** Begins a pause, in the place of the present one. */
  wait(delayMs: number, then: () => void): void {
    this.#waiting?.cancel();
    this.#waiting = this.#clock.setTimer(delayMs, then);
  }

  stopWaiting(): void {
    this.#waiting?.cancel();
    this.#waiting = null;
  }

  /** Sets the deadline, unless there is one already. */
  setDeadline(delayMs: number, then: () => void): void {
    if (this.#deadline !== null) return;
    this.#deadline = this.#clock.setTimer(delayMs, then);
    this.#setAgain = () => this.setDeadline(delayMs, then);
  }

  /** Sets the deadline as late again, if there is one. */
  restartDeadline(): void {
    if (this.#deadline === null) return;
    this.stopDeadline();
    this.#setAgain();
  }

  /** The host has done its work. Another deadline may be set for more. */
  stopDeadline(): void {
    this.#deadline?.cancel();
    this.#deadline = null;
  }

  stop(): void {
    this.stopWaiting();
    this.stopDeadline();
  }
}
