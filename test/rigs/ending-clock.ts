import type { Clock, Timer } from "../../runtime/clock.ts";

/**
 * A clock like the given one until `end`: then it cancels its timers, and sets none from then on. Services that were killed within this process would otherwise go
 * on with their periodic work while other files are tested.
 */
export class EndingClock implements Clock {
  readonly #clock: Clock;
  readonly #timers = new Set<Timer>();
  #hasEnded = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  setTimer(delayMs: number, run: () => void): Timer {
    if (this.#hasEnded) return { cancel: () => undefined };
    const timer = this.#clock.setTimer(delayMs, () => {
      this.#timers.delete(timer);
      run();
    });
    this.#timers.add(timer);
    return {
      cancel: () => {
        this.#timers.delete(timer);
        timer.cancel();
      },
    };
  }

  end(): void {
    this.#hasEnded = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }
}
