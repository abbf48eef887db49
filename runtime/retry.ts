import { type Clock, systemClock } from "./clock.ts";

export interface Backoff {
  /** Length of the pause after the first failure, which doubles with each further one. */
  readonly delayMs: number;
  readonly delayMsMax: number;
}

export interface RetryOptions extends Backoff {
  /** Total number of tries. */
  readonly triesMax: number;
  /** Whether another try can help; true for all errors by default. */
  readonly isTransient?: (error: unknown) => boolean;
  /** Returns a number from 0 to 1, by which callers that failed together are spread out. */
  readonly random?: () => number;
  readonly clock?: Clock;
  /** Ends the waiting when aborted: `retry` then rejects with the last error. */
  readonly signal?: AbortSignal;
}

/** Runs `work` until it succeeds, at most `triesMax` times, and rejects with the last error. */
export async function retry<Value>(work: (attempt: number) => Promise<Value>, options: RetryOptions): Promise<Value> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt >= options.triesMax || options.signal?.aborted || options.isTransient?.(error) === false) throw error;
      await pause(backoffMs(attempt, options, options.random ?? Math.random), options);
      if (options.signal?.aborted) throw error;
    }
  }
}

/** How long to pause after the `attempt`th failure (from 1): half of the doubled delay is fixed, half is random. */
export function backoffMs(attempt: number, backoff: Backoff, random: () => number): number {
  const ceiling = Math.min(backoff.delayMsMax, backoff.delayMs * 2 ** Math.min(attempt - 1, 30));
  return (ceiling / 2) * (1 + random());
}

function pause(delayMs: number, options: RetryOptions): Promise<void> {
  return new Promise((resolve) => {
    const timer = (options.clock ?? systemClock).setTimer(delayMs, done);
    function done(): void {
      timer.cancel();
      options.signal?.removeEventListener("abort", done);
      resolve();
    }
    options.signal?.addEventListener("abort", done);
  });
}
