const FIRST = 20;
const GROWTH = 1.5;

/**
 * Decides when to learn from the past again: when everything remembered is new, and in the beginning when half as many tasks as before have
 * come.
 */
export class LearningSchedule {
  readonly #remembered: number;
  #next = 0;

  /** `remembered` is the maximum number of tasks that the past holds. */
  constructor(remembered: number) {
    this.#remembered = remembered;
  }

  /** Whether learning is due now that `seen` tasks have come. If so, the next time is set. */
  isDue(seen: number): boolean {
    if (seen < this.#next) return false;
    this.#next = Math.min(seen * GROWTH + FIRST, seen + this.#remembered);
    return true;
  }
}
