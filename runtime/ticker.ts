import type { Clock, Timer } from "./clock.ts";

export interface TickerOptions {
  readonly clock: Clock;
  readonly pauseMs: number;
  readonly work: () => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/**
 * Repeats `work`, each time `pauseMs` after the last run ended, so that it never runs twice at once. Errors of `work` go to `onError`, and
 * the next run follows all the same.
 */
export class Ticker {
  readonly #options: TickerOptions;
  #timer: Timer | null = null;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: TickerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = this.#options.clock.setTimer(this.#options.pauseMs, () => {
      this.#running = this.#tick();
    });
  }

  /** Resolves when the work under way has ended; no run begins after that. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#running;
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
