import type { Clock, Timer } from "./clock.ts";

export interface TickerOptions {
  readonly clock: Clock;
  /** The time between two runs in milliseconds, which may depend on what the last run found. */
  readonly pauseMs: number | (() => number);
  readonly work: () => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/**
 * Repeats `work`, each time `pauseMs` after the last run ended, so that it never runs twice at once. Errors of `work` go to `onError`, and
 * the next run follows all the same.
 */
export class Ticker {
  readonly #options: TickerOptions;
  /** The timer of the next run, or null before `start` and during a run. */
  #timer: Timer | null = null;
  /** When the next run begins, in the clock's monotonic milliseconds. */
  #dueMs = 0;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: TickerOptions) {
    this.#options = options;
  }

  start(): void {
    const { pauseMs } = this.#options;
    this.#runAfter(typeof pauseMs === "number" ? pauseMs : pauseMs());
  }

  /** Begins the next run within `withinMs` milliseconds, if it is to begin later. Changes nothing before `start`, during a run and after `stop`. */
  hurry(withinMs: number): void {
    if (this.#stopped || this.#timer === null || this.#dueMs - this.#options.clock.monotonic() <= withinMs) return;
    this.#timer.cancel();
    this.#runAfter(withinMs);
  }

  /** Resolves when the work under way has ended; no run begins after that. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#running;
  }

  #runAfter(pauseMs: number): void {
    const { clock } = this.#options;
    this.#dueMs = clock.monotonic() + pauseMs;
    this.#timer = clock.setTimer(pauseMs, () => {
      this.#timer = null;
      this.#running = this.#tick();
    });
  }

  async #tick(): Promise<void> {
    try {
      await this.#options.work();
    } catch (error) {
      this.#options.onError(error);
    }
    if (!this.#stopped) this.start();
  }
}
