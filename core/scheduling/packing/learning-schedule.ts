const FIRST = 20;
const GROWTH = 1.5;

/** Says when to look at the past again: when everything remembered is new; in the beginning when half as many tasks as before have come. */
export class LearningSchedule {
  readonly #remembered: number;
  #next = 0;

  /** `remembered` is how many tasks the past has at most. */
  constructor(remembered: number) {
    this.#remembered = remembered;
  }

  /** Whether it is time, now that `seen` tasks have come; if so, the next time is later. */
  isDue(seen: number): boolean {
    if (seen < this.#next) return false;
    this.#next = Math.min(seen * GROWTH + FIRST, seen + this.#remembered);
    return true;
  }
}
