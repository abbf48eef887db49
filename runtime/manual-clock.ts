import type { Clock, Timer } from "./clock.ts";

/** A clock for tests and simulations, which advances only when told to. */
export class ManualClock implements Clock {
  #nowMs: number;
  readonly #startMs: number;
  #timers: { readonly atMs: number; readonly run: () => void }[] = [];

  constructor(startMs = 0) {
    this.#nowMs = startMs;
    this.#startMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs - this.#startMs;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const timer = { atMs: this.#nowMs + delayMs, run };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      },
    };
  }

  /** Number of timers that are set. */
  get pending(): number {
    return this.#timers.length;
  }

  /**
   * Advances by `byMs` and runs each timer at its own time, the earliest first. Timers of the same time run in the order in which they were
   * set.
   */
  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (let next = this.#nextUntil(untilMs); next !== undefined; next = this.#nextUntil(untilMs)) {
      const due = next;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#nowMs = due.atMs;
      due.run();
    }
    this.#nowMs = untilMs;
  }

  #nextUntil(untilMs: number): { readonly atMs: number; readonly run: () => void } | undefined {
    let first: { readonly atMs: number; readonly run: () => void } | undefined;
    for (const timer of this.#timers)
      if (timer.atMs <= untilMs && (first === undefined || timer.atMs < first.atMs)) first = timer;
    return first;
  }
}
