/** A call that waits for the end of the turn in which it was set. */
export interface Immediate {
  run: (() => void) | null;
}

/** The queue of `setImmediate` in a simulated world. Calls run before time goes on, in the order in which they were set. */
export class Immediates {
  #waiting: Immediate[] = [];
  #next = 0;

  add(run: () => void): Immediate {
    const immediate = { run };
    this.#waiting.push(immediate);
    return immediate;
  }

  /** Runs the first call; returns false if there is none. */
  runFirst(): boolean {
    while (this.#next < this.#waiting.length) {
      const { run } = this.#waiting[this.#next]!;
      this.#next += 1;
      if (this.#next === this.#waiting.length) {
        this.#waiting = [];
        this.#next = 0;
      }
      if (run === null) continue;
      run();
      return true;
    }
    return false;
  }
}
